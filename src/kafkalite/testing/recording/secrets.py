"""What of a login is not written down: tokens, what stands for a password, proofs of tokens.

Owns which fields of which messages these are. What is left says that something was there, never
what; a frame is made anew of what is left.
"""

from __future__ import annotations

from kafkalite.protocol import spec
from kafkalite.testing.recording.said import Said, frame_of

LOGIN, USERS, HANDSHAKE = "SaslAuthenticate", "AlterUserScramCredentials", "SaslHandshake"
TOKEN_APIS = tuple(f"{verb}DelegationToken" for verb in ("Create", "Renew", "Expire", "Describe"))
SECRETIVE = (LOGIN, USERS, *TOKEN_APIS)
TOKEN = "a token of a login, which is not written down"


def without_secrets(said: Said) -> Said:
    """The same without what would let somebody else in."""
    if said.api not in SECRETIVE:
        return said
    if said.message is None:
        said.frame, said.reason = b"", f"{said.reason}; {TOKEN}"
        return said
    if said.api == LOGIN:
        said.message.auth_bytes = b""
    for each in (said.message, *getattr(said.message, "tokens", ())):
        if hasattr(each, "hmac"):
            each.hmac = b""
    for upsertion in getattr(said.message, "upsertions", ()):
        upsertion.salt = upsertion.salted_password = b""
    said.frame = frame_of(said)
    return said


def begins_tokens(said: Said) -> bool:
    """Whether what comes behind it need not be a request."""
    return said.api == HANDSHAKE and said.version == 0


def as_token(said: Said) -> Said:
    """What could not be read behind such a handshake: its first bytes are no header."""
    said.frame, said.reason = b"", TOKEN
    said.api = said.version = said.correlation_id = said.client_id = None
    return said


def begins_secretively(start: bytes) -> bool:
    """Whether the start of a request, without its size, is of one that is not written down."""
    try:
        return spec.api(int.from_bytes(start[:2], "big", signed=True)).name in SECRETIVE
    except KeyError:
        return False
