"""What would let somebody in is not written down: what is secret, and tokens without any header.

Which fields that are is `client/secrets.py`'s. Owns what becomes of frames: one is made anew of
what is left of its message, and of one that cannot be read and may hold a secret nothing is kept.
"""

from __future__ import annotations

from kafkalite.client import secrets
from kafkalite.protocol import spec
from kafkalite.testing.recording.said import Said, frame_of

LOGIN, HANDSHAKE = "SaslAuthenticate", "SaslHandshake"
TOKEN = "a token of a login, which is not written down"
SECRET = "what may be secret is not written down"


def without_secrets(said: Said) -> Said:
    """The same without what would let somebody else in."""
    if said.message is not None:
        if secrets.without_secrets(said.message):
            said.frame = frame_of(said)
    elif secrets.may_hold_secrets(said.api):
        said.frame, said.reason = b"", f"{said.reason}; {SECRET}"
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
        api = spec.api(int.from_bytes(start[:2], "big", signed=True)).name
    except KeyError:
        return False
    return secrets.may_hold_secrets(api)
