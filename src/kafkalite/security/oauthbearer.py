"""OAUTHBEARER (RFC 7628): a token of somebody else's making, in one message.

Owns the form of that message, Kafka's words for what is wrong with it, and the reply to a token
that is not taken, which the peer has to confirm before it is refused. Whether a token is taken is
found out by whoever is given as `check`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.security.mechanisms import BrokenOff, Challenge, LoggedIn, Refused, Step

MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SEPARATOR: Final = "\x01"
CONFIRMATION: Final = b"\x01"  # of having heard that a token is not taken
INVALID: Final = "invalid_token"
SHOWN: Final = 200
MOST_PAIRS: Final = 1_000  # of which nothing but the token is looked at
# What is left until a moment is counted in nanoseconds by Apache Kafka, which cannot count further.
LONGEST_MS: Final = (2**63 - 1) // 1_000_000

_MESSAGE = re.compile(
    r"n,(?:a=(?P<wanted>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++))?,\x01"
    rf"(?P<pairs>(?:[A-Za-z]++=[\x21-\x7e \t\r\n]++\x01){{0,{MOST_PAIRS}}}+)\x01"
)
_HALF = re.compile("[\ud800-\udfff]")
_AUTH = re.compile(r"(?P<scheme>\w++) ++(?P<token>[-_~+/.a-zA-Z0-9]++=*)", re.ASCII)


@dataclass(slots=True, frozen=True)
class Bearer:
    """Whom a token that is taken names, and until when it holds."""

    user: str
    expires_ms: int  # by the wall clock


@dataclass(slots=True, frozen=True)
class NotTaken:
    """Why a token is not taken, in words for our own log, and what its bearer is told."""

    why: str
    status: str = INVALID
    scope: str | None = None


@dataclass(slots=True, frozen=True)
class Unreadable:
    """No token at all: Apache Kafka ends the connection without a word."""

    why: str


Checked = Bearer | NotTaken | Unreadable
Check = Callable[[str], "Checked | Later[Checked]"]


@dataclass(slots=True, frozen=True)
class _Message:
    wanted: str
    token: str = field(repr=False)


def bearer(user: str, expires_ms: int, now_ms: int) -> Checked:
    """Whom a token that is taken names, unless it holds for ever, or names whom no message of
    Kafka's can name: JSON may tell of half of a character."""
    if _HALF.search(user):
        return NotTaken("who it names has half of a character in its name")
    if expires_ms - now_ms > LONGEST_MS:
        return Unreadable("its token holds for longer than can be counted")
    return Bearer(user, expires_ms)


class OauthExchange:
    """One login."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._refused: tuple[NotTaken, str] | None = None

    def take(self, token: bytes) -> Step | Later[Step]:
        if self._refused is not None and token == CONFIRMATION:
            why, told = self._refused
            return Refused(why.why, told=told)
        self._refused = None
        try:
            message = _message_of(token.decode(errors="replace"))
        except _WrongScheme:
            return BrokenOff("it brings something else than a bearer's token")
        except ValueError as error:
            return Refused(str(error))
        checked = self._check(message.token)
        if isinstance(checked, Later):
            return checked.map(partial(self._after, message))
        return self._after(message, checked)

    def _after(self, message: _Message, checked: Checked) -> Step:
        if isinstance(checked, Unreadable):
            return BrokenOff(checked.why)
        if isinstance(checked, NotTaken):
            return self._not_taken(checked)
        if message.wanted not in ("", checked.user):
            why = (
                f"Authentication failed: Client requested an authorization id ({message.wanted}) "
                f"that is different from the token's principal name ({checked.user})"
            )
            return Refused(_cut(why), told=why, user=checked.user)
        return LoggedIn(checked.user, expires_ms=checked.expires_ms)

    def _not_taken(self, why: NotTaken) -> Challenge:
        told = f'{{"status":"{why.status}"'
        if why.scope is not None:
            told += f', "scope":"{why.scope}"'
        self._refused = why, told + "}"
        return Challenge(self._refused[1].encode())


class _WrongScheme(ValueError):
    """At which Apache Kafka ends the connection without a word."""


def _message_of(text: str) -> _Message:
    """Raises ValueError for what is none."""
    found = _MESSAGE.fullmatch(text)
    if found is None:
        raise ValueError("Invalid OAUTHBEARER client first message")
    _, is_told, behind = (SEPARATOR + found["pairs"]).rpartition(f"{SEPARATOR}auth=")
    if not is_told:
        raise ValueError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    bearer = _AUTH.fullmatch(behind.partition(SEPARATOR)[0])
    if bearer is None:
        raise ValueError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if bearer["scheme"].lower() != "bearer":
        raise _WrongScheme
    return _Message(found["wanted"] or "", bearer["token"])


def _cut(why: str) -> str:
    return why if len(why) <= SHOWN else f"{why[:SHOWN]}…"
