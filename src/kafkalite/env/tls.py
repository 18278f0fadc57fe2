"""TLS contexts: what a listener or a caller shows, trusts and offers, as OpenSSL keeps it.

Owns the making of ssl.SSLContext from values in memory, and the words of OpenSSL's errors. Keys
never lie in a file that has a name: OpenSSL reads them from memory where the system can do that.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from kafkalite.env.dataclasses import dataclass

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
# Those of TLS 1.3: OpenSSL has them on or off together, as far as Python reaches.
SUITES_13 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")


class TlsError(ValueError):
    """What cannot be served; the message has no secret in it."""


class RevocationsUnreadable(TlsError):
    """It is not the key that cannot be taken."""


@dataclass(slots=True, frozen=True, repr=False)
class Shown:
    """A key and its certificates in PEM."""

    key: bytes
    chain: bytes
    password: str | None = None


@dataclass(slots=True, frozen=True, repr=False)
class Offer:
    """One side's part in a handshake. Trusting None is trusting what this machine trusts."""

    shown: Sequence[Shown] = ()
    trusted: Sequence[bytes] | None = None  # DER
    versions: Sequence[str] = ("TLSv1.2", "TLSv1.3")
    ciphers: Sequence[str] | None = None  # of TLS 1.2, in OpenSSL's names
    client_auth: str = "none"  # what a server asks for
    checks_name: bool = True  # whether a client compares the name it called
    revoked: bytes | None = None  # in PEM: what was taken back, by each issuer whose word counts


def server_context(offer: Offer) -> ssl.SSLContext:
    """For those who are called; raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _prepare(context, offer)
    context.verify_mode = CLIENT_AUTH[offer.client_auth]
    if offer.client_auth != "none":
        _trust(context, offer.trusted, ssl.Purpose.CLIENT_AUTH)
        _refuse(context, offer.revoked)
    return context


def client_context(offer: Offer) -> ssl.SSLContext:
    """For those who call; raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _prepare(context, offer)
    context.check_hostname = offer.checks_name
    _trust(context, offer.trusted, ssl.Purpose.SERVER_AUTH)
    _refuse(context, offer.revoked)
    return context


def _prepare(context: ssl.SSLContext, offer: Offer) -> None:
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    wanted = [VERSIONS[each] for each in offer.versions]
    context.minimum_version, context.maximum_version = min(wanted), max(wanted)
    if offer.ciphers is not None:
        _choose(context, offer.ciphers)
    for shown in reversed(offer.shown):  # of one kind of key the last one counts
        _show(context, shown)


def _choose(context: ssl.SSLContext, ciphers: Sequence[str]) -> None:
    for each in ciphers:
        try:
            context.set_ciphers(each)
        except ssl.SSLError:
            raise TlsError(f"this OpenSSL has no cipher {each}") from None
    if ciphers:
        context.set_ciphers(":".join(ciphers))


def _show(context: ssl.SSLContext, shown: Shown) -> None:
    password = "" if shown.password is None else shown.password
    try:
        with _readable(shown.key + shown.chain) as path:
            # Without a password OpenSSL would ask for one at the terminal.
            context.load_cert_chain(path, password=lambda: password)
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"the key and its certificates cannot be taken: {_words(error)}") from None


def _trust(
    context: ssl.SSLContext, trusted: Sequence[bytes] | None, purpose: ssl.Purpose
) -> None:
    if trusted is None:
        context.load_default_certs(purpose)
        return
    # As with Java, whatever is trusted ends a chain, be it a root or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    for each in dict.fromkeys(trusted):
        try:
            context.load_verify_locations(cadata=each)
        except (ssl.SSLError, ValueError) as error:
            raise TlsError(f"a certificate cannot be trusted: {_words(error)}") from None


def _refuse(context: ssl.SSLContext, revoked: bytes | None) -> None:
    if revoked is None:
        return
    try:
        with _readable(revoked) as path:
            context.load_verify_locations(path)
    except (ssl.SSLError, ValueError) as error:
        raise RevocationsUnreadable(f"there is no CRL in it: {_words(error)}") from None
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


@contextmanager
def _readable(data: bytes) -> Iterator[str]:
    """A path that OpenSSL can read it from, for as long as that takes."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kafkalite", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    descriptor, path = tempfile.mkstemp()  # readable by its owner alone
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        yield path
    finally:
        with suppress(OSError):
            os.remove(path)


_KNOWN = {
    "KEY_VALUES_MISMATCH": "the private key belongs to another certificate",
    "EE_KEY_TOO_SMALL": "its key is too small for this OpenSSL",
    "CA_KEY_TOO_SMALL": "the key of a certificate above it is too small for this OpenSSL",
    "CA_MD_TOO_WEAK": "a certificate is signed with an algorithm too weak for this OpenSSL",
    "BAD_DECRYPT": "the password of the private key is wrong",
    "BAD_PASSWORD_READ": "the password of the private key is wrong",
    "UNKNOWN_CERTIFICATE_TYPE": "this OpenSSL does not know the kind of its key",
}


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason is None:
        return "it is damaged, or its password is wrong"
    return _KNOWN.get(reason, str(reason).lower().replace("_", " "))


def reason_of(error: ssl.SSLError) -> str:
    """What ended a handshake or a link, in OpenSSL's words without its numbers."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return (error.reason or str(error)).lower().replace("_", " ")
