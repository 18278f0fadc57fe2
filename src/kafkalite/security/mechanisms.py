"""What a SASL mechanism is: an exchange of tokens that comes to a user, or to a refusal. Sans-IO.

Owns that interface, and the names of what is served. An exchange is of one login: it is given the
peer's tokens one after the other, and nothing any more once it has come to an end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later

PLAIN: Final = "PLAIN"
SCRAM_256: Final = "SCRAM-SHA-256"
SCRAM_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
BY_PASSWORD: Final = (PLAIN, SCRAM_256, SCRAM_512)
SERVED: Final = (*BY_PASSWORD, OAUTHBEARER)


@dataclass(slots=True, frozen=True)
class Challenge:
    """The peer has to go on from this."""

    token: bytes = field(repr=False)


@dataclass(slots=True, frozen=True)
class LoggedIn:
    """It is this user; the token is the last one, for the peer to check who we are. What it showed
    may hold until a moment of the wall clock, and its session then ends with it."""

    user: str
    token: bytes = field(default=b"", repr=False)
    expires_ms: int | None = None
    is_by_token: bool = False  # a delegation token, with which one may not ask for others


@dataclass(slots=True, frozen=True)
class Refused:
    """It may not come in. The peer hears what it is told, or else that its credentials are invalid:
    more would say who has an account here. `why` is for our own log; nothing of it is secret."""

    why: str
    told: str | None = None
    user: str | None = None  # as it called itself


@dataclass(slots=True, frozen=True)
class BrokenOff:
    """What it sent cannot be of this mechanism: it hears nothing more."""

    why: str
    user: str | None = None


Step = Challenge | LoggedIn | Refused | BrokenOff


class Exchange(Protocol):
    """One login. A step that needs a worker, or what has not been read yet, comes later."""

    def take(self, token: bytes) -> Step | Later[Step]: ...


# Begins a login.
Mechanism = Callable[[], Exchange]
