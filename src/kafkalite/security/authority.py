"""A certificate authority for tests: a root, and certificates for servers and clients under it.

Owns what such certificates say. Made with the library of the extra `security`; nobody should trust
them beyond a test. Keys are ECDSA (P-256), for which a handshake costs the least, or RSA on demand.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kafkalite.security import jks

RSA_BITS = 2048
DAYS = 3_650
_DAY_BEFORE = timedelta(days=1)  # clocks of machines differ
_WORDS = {
    "CN": NameOID.COMMON_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
}

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(slots=True, frozen=True, repr=False)
class Issued:
    """A key, its certificate, and that of the root."""

    key: Key
    certificate: x509.Certificate
    root: x509.Certificate

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()

    @property
    def chain_pem(self) -> str:
        return pem_of(self.certificate) + pem_of(self.root)

    def pkcs12(self, password: str) -> bytes:
        closed = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"key", self.key, self.certificate, [self.root], closed
        )

    def jks(self, password: str, salt: bytes) -> bytes:
        """A store of Java's own; `salt` is 20 bytes of chance."""
        key = self.key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        chain = [der_of(self.certificate), der_of(self.root)]
        return jks.write(password, key=(key, chain), salt=salt)


class Authority:
    """One root."""

    def __init__(self, name: str, now: datetime) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(f"CN={name}")
        self.root = (
            self._builder(self._name, self._key, now + timedelta(days=DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def issue(
        self,
        subject: str,
        hosts: Sequence[str] = (),
        *,
        is_rsa: bool = False,
        until: datetime | None = None,
    ) -> Issued:
        """A certificate of `CN=…,OU=…,O=…`, for these names and addresses."""
        key: Key = (
            rsa.generate_private_key(65_537, RSA_BITS) if is_rsa
            else ec.generate_private_key(ec.SECP256R1())
        )  # fmt: skip
        ends = until or self._now + timedelta(days=DAYS)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            self._builder(_name(subject), key, ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([_host(each) for each in hosts])
            builder = builder.add_extension(names, critical=False)
        return Issued(key, builder.sign(self._key, hashes.SHA256()), self.root)

    def _builder(self, name: x509.Name, key: Key, ends: datetime) -> x509.CertificateBuilder:
        above = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(self._now, ends) - _DAY_BEFORE)
            .not_valid_after(ends)
            .add_extension(own, critical=False)
            .add_extension(above, critical=False)
        )

    def trusted_pkcs12(self, password: str) -> bytes:
        """A store from which Java takes the root as trusted."""
        closed = serialization.BestAvailableEncryption(password.encode())
        root = pkcs12.PKCS12Certificate(self.root, b"root")
        return pkcs12.serialize_java_truststore([root], closed)

    def trusted_jks(self, password: str) -> bytes:
        return jks.write(password, trusted=[der_of(self.root)])


def utc_now(milliseconds: int) -> datetime:
    """A moment of the wall clock, as certificates have it."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).replace(microsecond=0)


def pem_of(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def der_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def _name(text: str) -> x509.Name:
    """Of `CN=a,OU=b`, as Java writes it: the last part comes first in the certificate."""
    pairs = [part.partition("=") for part in text.split(",")]
    return x509.Name([
        x509.NameAttribute(_WORDS[word], value) for word, _, value in reversed(pairs)
    ])  # fmt: skip


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=not signs_certificates,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
