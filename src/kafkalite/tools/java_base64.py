"""Base64 as Java's basic decoder reads it: what fills up the end may be left out, but for all of it
or none."""

from __future__ import annotations

from base64 import b64decode

_GROUP, _FILL = 4, "="


def decoded(text: str) -> bytes:
    """ValueError for what Java refuses."""
    fill = "" if _FILL in text else _FILL * (-len(text) % _GROUP)
    return b64decode(text + fill, validate=True)
