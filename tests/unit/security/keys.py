"""Keys and certificates for tests, made once for the whole run, and links that run in memory."""

import time
from datetime import timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from kafkalite.security.authority import Authority, Issued, utc_now

PASSWORD = "a secret of tests"
NOW = utc_now(int(time.time()) * 1000)
HOSTS = ("localhost", "127.0.0.1", "::1")


@cache
def authority(name: str = "root of tests") -> Authority:
    return Authority(name, NOW)


@cache
def server(is_rsa: bool = False) -> Issued:
    return authority().issue("CN=server,O=tests", HOSTS, is_rsa=is_rsa)


@cache
def client() -> Issued:
    return authority().issue("CN=client,OU=people,O=tests")


def closed_key_pem(issued: Issued, password: str) -> str:
    """The key, encrypted."""
    closed = serialization.BestAvailableEncryption(password.encode())
    return issued.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, closed
    ).decode()


@cache
def expired() -> Issued:
    return authority().issue("CN=late", until=NOW - timedelta(days=2))


@cache
def stranger() -> Issued:
    return authority("another root").issue("CN=stranger", HOSTS)


def taken_back(
    *revoked: Issued, of: Authority | None = None, until: timedelta | None = None
) -> str:
    """A list of an authority's, in PEM."""
    by = of or authority()
    end = NOW + (until or timedelta(days=1))
    begin = min(NOW, end) - timedelta(days=2)
    made = x509.CertificateRevocationListBuilder(by.root.subject, begin, end)
    for each in revoked:
        number = each.certificate.serial_number
        made = made.add_revoked_certificate(
            x509.RevokedCertificateBuilder(number, begin).build()
        )
    return made.sign(by._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
