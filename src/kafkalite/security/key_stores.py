"""Keys and certificates, from where settings keep them: PEM (files, or texts in the settings
themselves), PKCS #12 and JKS.

Owns the way from a store to an identity in PEM and to trusted certificates in DER. What a store is,
is seen from its first bytes: Java takes PKCS #12 and JKS for each other, too. Every failure is one
sentence that names the setting and no secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path

from kafkalite.config.setting import InvalidSetting
from kafkalite.env.dataclasses import dataclass
from kafkalite.security import jks
from kafkalite.security.certificates import in_order
from kafkalite.security.der import MalformedDer, only

PEM, JKS, PKCS12 = "PEM", "JKS", "PKCS12"
TYPES = (JKS, PKCS12, PEM)
REVOCATIONS = "X509 CRL"
LARGEST_STORE = 16 * 1024 * 1024
_BLOCK = re.compile(
    r"-+BEGIN\s+([A-Z0-9 ]+?)\s*-+\s+((?:[^\r\n:]+:[^\r\n]*\s*[\r\n]+)*)([A-Za-z0-9/+=\s]+)-+END"
)
_LINE = 64


@dataclass(slots=True, frozen=True, repr=False)
class Identity:
    """A key and its certificates from the leaf up, in PEM, and what opens the key."""

    key: bytes
    chain: bytes
    password: str | None = None

    @property
    def leaf(self) -> bytes:
        """The DER of its own certificate."""
        return certificates_of(self.chain.decode())[0]


@dataclass(slots=True, frozen=True, repr=False)
class Place:
    """Where the settings keep a store, under which names; None is what nobody set."""

    setting: str  # the name that is told: that of the location, or of the text
    kind: str
    location: str | None = None
    password: str | None = None
    key_password: str | None = None
    key: str | None = None  # PEM texts
    certificates: str | None = None

    def problem(self, why: str) -> InvalidSetting:
        where = f"{self.location}: " if self.location is not None else ""
        return InvalidSetting(f"{self.setting}: {where}{why}")


def read_identities(place: Place) -> list[Identity]:
    """The keys of a store, the first of each kind first; raises InvalidSetting."""
    if place.key is not None:
        return [_pem_identity(place, place.key, place.certificates or "")]
    data = _bytes_of(place)
    if place.kind == PEM:
        text = data.decode("ascii", "replace")
        return [_pem_identity(place, text, text)]
    if data[:4] == jks.MAGIC:
        found = _jks_identities(place, data)
    else:
        found = _pkcs12_identities(place, data)
    if not found:
        raise place.problem("there is no private key in this store")
    return found


def read_trusted(place: Place) -> list[bytes]:
    """The certificates that are trusted, in DER; raises InvalidSetting."""
    if place.certificates is not None:
        found = _pem_certificates(place, place.certificates)
    else:
        data = _bytes_of(place)
        if place.kind == PEM:
            found = _pem_certificates(place, data.decode("ascii", "replace"))
        elif data[:4] == jks.MAGIC:
            store = _read_jks(place, data)
            found = store.certificates + [each.chain[0] for each in store.keys if each.chain]
        else:
            key, leaf, others = _read_pkcs12(place, data)
            found = others if key is None or leaf is None else [leaf, *others]
    if not found:
        raise place.problem("there is no certificate in this store")
    return found


def read_revoked(place: Place) -> bytes:
    """The lists of certificates that were taken back, in PEM: nothing else of the file, since a
    certificate beside them would be trusted."""
    text = _bytes_of(place).decode(errors="replace")
    blocks = [each for each in _BLOCK.finditer(text) if each[1] == REVOCATIONS]
    try:
        lists = [pem(REVOCATIONS, base64.b64decode("".join(each[3].split()))) for each in blocks]
    except binascii.Error:
        raise place.problem(f"an {REVOCATIONS} in this file is damaged") from None
    if not lists:
        raise place.problem(f"there is no {REVOCATIONS} in this file")
    return b"".join(lists)


def _bytes_of(place: Place) -> bytes:
    assert place.location is not None
    try:
        with Path(place.location).open("rb") as file:
            data = file.read(LARGEST_STORE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise place.problem(f"the store cannot be read: {reason}") from None
    if len(data) > LARGEST_STORE:
        raise place.problem(f"the file is larger than {LARGEST_STORE} bytes and no key store")
    return data


# --- PEM ------------------------------------------------------------------------------------------


def certificates_of(text: str) -> list[bytes]:
    """The DER of the certificates in a PEM text; raises ValueError for bytes that are none."""
    return [
        base64.b64decode("".join(block[3].split()), validate=True)
        for block in _BLOCK.finditer(text)
        if block[1].endswith("CERTIFICATE")
    ]


def pem(label: str, der: bytes) -> bytes:
    """PEM of a DER value."""
    return _armoured(label, "", base64.b64encode(der).decode())


def _armoured(label: str, headers: str, body: str) -> bytes:
    lines = [body[start : start + _LINE] for start in range(0, len(body), _LINE)]
    head = f"{headers.strip()}\n\n" if headers else ""
    text = "\n".join(lines)
    return f"-----BEGIN {label}-----\n{head}{text}\n-----END {label}-----\n".encode()


def _pem_certificates(place: Place, text: str) -> list[bytes]:
    try:
        found = certificates_of(text)
        for each in found:
            only(each)
    except (binascii.Error, MalformedDer):
        raise place.problem("a certificate in this PEM text is damaged") from None
    return found


def _pem_identity(place: Place, key_text: str, chain_text: str) -> Identity:
    chain = _pem_certificates(place, chain_text)
    keys = [block for block in _BLOCK.finditer(key_text) if block[1].endswith("PRIVATE KEY")]
    if not keys:
        raise place.problem("there is no private key in this PEM text")
    if not chain:
        raise place.problem("there is no certificate in this PEM text")
    label, headers, body = keys[0].groups()
    is_closed = label.startswith("ENCRYPTED") or "ENCRYPTED" in headers
    if is_closed and place.key_password is None:
        raise place.problem("the private key is encrypted, and ssl.key.password is not set")
    key = _armoured(label, headers, "".join(body.split()))
    shown = b"".join(pem("CERTIFICATE", each) for each in chain)
    return Identity(key, shown, place.key_password if is_closed else None)


# --- JKS ------------------------------------------------------------------------------------------


def _read_jks(place: Place, data: bytes) -> jks.Jks:
    try:
        return jks.read(data, place.password)
    except jks.MalformedStore as error:
        raise place.problem(str(error)) from None


def _jks_identities(place: Place, data: bytes) -> list[Identity]:
    password = place.key_password if place.key_password is not None else place.password
    found = []
    for entry in _read_jks(place, data).keys:
        try:
            key = entry.key(password or "")
        except jks.MalformedStore as error:
            raise place.problem(str(error)) from None
        if entry.chain:
            chain = b"".join(pem("CERTIFICATE", each) for each in entry.chain)
            found.append(Identity(pem("PRIVATE KEY", key), chain))
    return found


# --- PKCS #12 -------------------------------------------------------------------------------------


def _pkcs12_identities(place: Place, data: bytes) -> list[Identity]:
    key, leaf, others = _read_pkcs12(place, data)
    if key is None or leaf is None:
        return []
    chain = b"".join(pem("CERTIFICATE", each) for each in in_order(leaf, others))
    return [Identity(pem("PRIVATE KEY", key), chain)]


def _read_pkcs12(place: Place, data: bytes) -> tuple[bytes | None, bytes | None, list[bytes]]:
    """The key, its certificate, and the other certificates."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError:
        raise place.problem(
            "a PKCS #12 store is read with a library that is not installed: "
            "pip install 'kafkalite[security]', or keep the key as PEM or JKS"
        ) from None
    password = None if place.password is None else place.password.encode()
    try:
        key, leaf, others = pkcs12.load_key_and_certificates(data, password)
    except ValueError as error:
        is_password = "password" in str(error).lower()
        why = "keystore password was incorrect" if is_password else "the file is no PKCS #12 store"
        raise place.problem(f"{why}, or it is damaged") from None
    except Exception as error:  # noqa: BLE001 - whatever the library makes of a file
        raise place.problem(f"the store cannot be read: {type(error).__name__}") from None
    der = serialization.Encoding.DER
    hidden = None if key is None else key.private_bytes(
        der, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )  # fmt: skip
    own = None if leaf is None else leaf.public_bytes(der)
    return hidden, own, [each.public_bytes(der) for each in others]
