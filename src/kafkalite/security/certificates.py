"""What a certificate says of itself: subject and issuer, and the subject's name as Java writes it.

Owns the way from DER to RFC 2253 in Java's order and with Java's escapes, which is the name of
Kafka's principal. Trusts nothing and verifies nothing: that is OpenSSL's task.
"""

from __future__ import annotations

from kafkalite.security.der import SEQUENCE, Element, MalformedDer, dotted, only

# Those that have a word in RFC 2253, as Java has it; all others are told by their numbers.
WORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# UTF8, printable, T61, IA5, general and BMP strings: Java decodes all of them as UTF-8.
TEXTS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
ESCAPED = ',=+<>#;"\\'
BLANKS = " \r"
_ALTERNATIVE_NAMES = "2.5.29.17"
_EXTENSIONS_TAG = 0xA3


def subject(certificate: bytes) -> bytes:
    """The DER of the subject of a certificate."""
    return _fields(certificate)[4].encoded


def issuer(certificate: bytes) -> bytes:
    """The DER of its issuer."""
    return _fields(certificate)[2].encoded


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """The DER of each of its subject's alternative names."""
    for field in _fields(certificate):
        if field.tag == _EXTENSIONS_TAG:
            for extension in only(field.content).inner():
                parts = extension.inner()
                if dotted(parts[0].content) == _ALTERNATIVE_NAMES:
                    names = only(parts[-1].content).inner()
                    return frozenset(each.encoded for each in names)
    return frozenset()


def _fields(certificate: bytes) -> list[Element]:
    """Serial number, signature, issuer, validity, subject and what follows."""
    parts = only(certificate).inner()
    if not parts or parts[0].tag != SEQUENCE:
        raise MalformedDer("no certificate")
    fields = parts[0].inner()
    if fields and fields[0].tag == 0xA0:  # the version, which the first kind does not have
        fields = fields[1:]
    if len(fields) < 6:
        raise MalformedDer("a certificate that lacks fields")
    return fields


def name_of(certificate: bytes) -> str:
    """The subject as Java's X500Principal names it."""
    return rfc2253(subject(certificate))


def rfc2253(name: bytes) -> str:
    """The text of a name: its parts from the last to the first."""
    parts = ["+".join(map(_pair, part.inner())) for part in only(name).inner()]
    return ",".join(reversed(parts))


def _pair(element: Element) -> str:
    try:
        kind, value = element.inner()
    except ValueError as error:
        raise MalformedDer("a name has a part that is no pair") from error
    number = dotted(kind.content)
    word = WORDS.get(number)
    if word is None or value.tag not in TEXTS:
        return f"{word or number}=#{value.encoded.hex()}"
    return f"{word}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    shown = "".join(f"\\{each}" if each in ESCAPED else each for each in text)
    shown = shown.replace("\0", "\\00")
    inside = shown.strip(BLANKS)
    if not inside:
        return "".join(f"\\{each}" for each in shown)
    lead = shown[: shown.index(inside)]
    trail = shown[len(lead) + len(inside) :]
    return "".join(f"\\{each}" for each in lead) + inside + "".join(f"\\{each}" for each in trail)


def in_order(leaf: bytes, others: list[bytes]) -> list[bytes]:
    """A chain from its leaf to its root, of certificates that come in any order."""
    by_subject = {subject(each): each for each in others}
    chain = [leaf]
    while True:
        above = issuer(chain[-1])
        if above == subject(chain[-1]) or above not in by_subject:
            return chain
        chain.append(by_subject.pop(above))
