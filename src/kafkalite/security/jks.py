"""Java's own key stores (JKS): read, and written for tests and trials.

Owns that format: a table of certificates and of keys, each hidden by a stream of SHA-1 digests, and
a digest over all of it that begins with the password. Keys are known here as PKCS #8, never shown.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterator, Sequence

from kafkalite.env.dataclasses import dataclass
from kafkalite.security.der import MalformedDer, dotted, only

MAGIC = b"\xfe\xed\xfe\xed"
VERSION = 2
KEY, CERTIFICATE = 1, 2
DIGEST_BYTES = SALT_BYTES = 20
_PEPPER = b"Mighty Aphrodite"
_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_PROTECTOR_DER = bytes.fromhex("300e060a2b060104012a021101010500")


class MalformedStore(ValueError):
    """A store that cannot be read; the message has no secret in it."""


class WrongPassword(MalformedStore):
    """A password that does not fit, or a store that was tampered with: nobody can tell which."""


@dataclass(slots=True, frozen=True)
class KeyEntry:
    """A key that is still hidden, with its certificates from the leaf up."""

    alias: str
    hidden: bytes
    chain: list[bytes]

    def key(self, password: str) -> bytes:
        """The key as PKCS #8."""
        return _uncover(self.hidden, password)


@dataclass(slots=True, frozen=True)
class Jks:
    """What is in a store."""

    keys: list[KeyEntry]
    certificates: list[bytes]


def read(data: bytes, password: str | None) -> Jks:
    """Raises WrongPassword or MalformedStore; without a password nothing is verified."""
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if password is not None and not hmac.compare_digest(_digest(body, password), digest):
        raise WrongPassword("keystore password was incorrect, or the file was tampered with")
    try:
        return _entries(_Reader(body))
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedStore("the file ends early, or is no JKS store") from error


def _entries(reader: _Reader) -> Jks:
    if reader.take(4) != MAGIC:
        raise MalformedStore("the file is no JKS store")
    version, count = reader.number(), reader.number()
    if version not in (1, VERSION):
        raise MalformedStore(f"it is a JKS store of version {version}, which nobody knows")
    found = Jks([], [])
    for _ in range(count):
        tag, alias = reader.number(), reader.text()
        reader.take(8)  # when it was put there
        if tag == KEY:
            hidden = reader.block()
            chain = [_certificate(reader, version) for _ in range(reader.number())]
            found.keys.append(KeyEntry(alias, hidden, chain))
        elif tag == CERTIFICATE:
            found.certificates.append(_certificate(reader, version))
        else:
            raise MalformedStore(f"it has an entry of the unknown kind {tag}")
    return found


def _certificate(reader: _Reader, version: int) -> bytes:
    kind = reader.text() if version == VERSION else "X.509"
    if kind != "X.509":
        raise MalformedStore(f"it has a certificate of the unknown kind {kind}")
    return reader.block()


class _Reader:
    """Takes fields from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise struct.error("no more bytes")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def text(self) -> str:
        return self.take(int.from_bytes(self.take(2), "big")).decode()

    def block(self) -> bytes:
        return self.take(self.number())


def _digest(body: bytes, password: str) -> bytes:
    return hashlib.sha1(_wide(password) + _PEPPER + body, usedforsecurity=False).digest()


def _wide(password: str) -> bytes:
    return password.encode("utf-16-be", "surrogatepass")


# --- how keys are hidden --------------------------------------------------------------------------


def _uncover(hidden: bytes, password: str) -> bytes:
    try:
        algorithm, box = only(hidden).inner()
        number = dotted(algorithm.inner()[0].content)
    except (MalformedDer, ValueError, IndexError) as error:
        raise MalformedStore("its key is no EncryptedPrivateKeyInfo") from error
    if number != _PROTECTOR:
        raise MalformedStore(f"its key is hidden by the unknown algorithm {number}")
    if len(box.content) < SALT_BYTES + DIGEST_BYTES:
        raise MalformedStore("its key is too short to be one")
    salt, covered = box.content[:SALT_BYTES], box.content[SALT_BYTES:-DIGEST_BYTES]
    key = _masked(covered, salt, password)
    check = hashlib.sha1(_wide(password) + key, usedforsecurity=False).digest()
    if not hmac.compare_digest(check, box.content[-DIGEST_BYTES:]):
        raise WrongPassword("the password of its key is wrong")
    return key


def _masked(data: bytes, salt: bytes, password: str) -> bytes:
    stream = b"".join(_stream(salt, password, len(data)))[: len(data)]
    return bytes(a ^ b for a, b in zip(data, stream, strict=True))


def _stream(salt: bytes, password: str, count: int) -> Iterator[bytes]:
    link = salt
    for _ in range(0, count, DIGEST_BYTES):
        link = hashlib.sha1(_wide(password) + link, usedforsecurity=False).digest()
        yield link


# --- writing --------------------------------------------------------------------------------------


def write(
    password: str,
    *,
    key: tuple[bytes, Sequence[bytes]] | None = None,
    trusted: Sequence[bytes] = (),
    salt: bytes = b"",
    now_ms: int = 0,
) -> bytes:
    """A store with a key (PKCS #8, and its chain) hidden by the same password, or with trusted
    certificates; `salt` is 20 bytes of chance."""
    entries = [] if key is None else [_key_entry(key, password, salt, now_ms)]
    entries += [
        _head(CERTIFICATE, f"trusted{number}", now_ms) + _typed(each)
        for number, each in enumerate(trusted)
    ]
    body = MAGIC + _number(VERSION) + _number(len(entries)) + b"".join(entries)
    return body + _digest(body, password)


def _key_entry(
    key: tuple[bytes, Sequence[bytes]], password: str, salt: bytes, now_ms: int
) -> bytes:
    assert len(salt) == SALT_BYTES
    plain, chain = key
    check = hashlib.sha1(_wide(password) + plain, usedforsecurity=False).digest()
    box = salt + _masked(plain, salt, password) + check
    hidden = _der(0x30, _PROTECTOR_DER + _der(0x04, box))
    certificates = _number(len(chain)) + b"".join(map(_typed, chain))
    return _head(KEY, "key", now_ms) + _number(len(hidden)) + hidden + certificates


def _head(kind: int, alias: str, now_ms: int) -> bytes:
    return _number(kind) + _text(alias) + now_ms.to_bytes(8, "big")


def _typed(certificate: bytes) -> bytes:
    return _text("X.509") + _number(len(certificate)) + certificate


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
