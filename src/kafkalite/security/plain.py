"""PLAIN (RFC 4616): a user and a password as they are, in one token.

Owns the form of that token and Kafka's sentences for what is wrong with it. Users are given;
passwords are compared in a time that does not tell how much of one was right.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from kafkalite.security.mechanisms import LoggedIn, Refused, Step

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PARTS = 3  # who it wants to be, who it is, and its password
# In place of a password, for a name that nobody has: comparing takes as long.
NOBODYS = "\0"


class PlainExchange:
    """One login."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def take(self, token: bytes) -> Step:
        parts = token.decode(errors="replace").split("\0", PARTS)
        if len(parts) != PARTS:
            return _told(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        wanted, user, password = parts
        if not user:
            return _told("Authentication failed: username not specified")
        if not password:
            return _told("Authentication failed: password not specified", user)
        known = self._users.get(user, NOBODYS)
        if not hmac.compare_digest(_bytes(known), _bytes(password)):
            return _told("Authentication failed: Invalid username or password", user)
        if wanted not in ("", user):
            why = "Authentication failed: Client requested an authorization id that is different "
            return _told(why + "from username", user)
        return LoggedIn(user)


def plain_token(user: str, password: str) -> bytes:
    """What a client sends."""
    return f"\0{user}\0{password}".encode()


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _told(why: str, user: str | None = None) -> Refused:
    return Refused(why, told=why, user=user)
