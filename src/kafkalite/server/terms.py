"""On what terms a connection's frames are taken: who answers them, how large, how many at once.

Owns that as a value, which a service may change together with a reply. So one listener has its
peers log in and another one lets them all in, and a connection knows of no login. Before one, the
terms are narrow: one small request at a time, whatever its service makes of its bytes, which need
not begin with a header; and not for long.
"""

from __future__ import annotations

from typing import Protocol

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.network import Part
from kafkalite.handlers.call import CloseConnection
from kafkalite.server.connection_info import ConnectionInfo

LARGEST_FRAME = 2**31 - 1
# Whoever has more than this open must take replies before it is read from again.
OWED_REPLIES = 128

Reply = list[Part]


class Service(Protocol):
    """Who answers requests."""

    def answer(self, frame: memoryview, connection: ConnectionInfo) -> Answer:
        """The reply to a frame without its size: now, later, or none at all."""
        ...

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        """What to say to a peer whose frame cannot be one, before it is cut off."""
        ...

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        """A peer was too slow and has been cut off."""
        ...


@dataclass(slots=True, frozen=True)
class Terms:
    """What holds from one frame on, until other terms are agreed on."""

    service: Service
    max_frame_bytes: int = LARGEST_FRAME  # never more than all frames may have
    owed_replies: int = OWED_REPLIES  # with 1 a frame is taken only after the reply before it
    login_ms: int | None = None  # how long a peer has until it is on other terms


@dataclass(slots=True, frozen=True)
class NewTerms:
    """Returned in place of a reply: it is sent, and what comes behind its request is taken on
    these terms; at once, or, with a reply that comes later, from then on."""

    reply: Reply
    terms: Terms


@dataclass(slots=True, frozen=True)
class Throttled:
    """Returned in place of a reply, or of none: it is sent, and for so long no other frame is taken
    from its client, which had more than its quota (KIP-219)."""

    reply: Reply | None
    wait_ms: int


Outcome = Reply | CloseConnection | NewTerms | Throttled
Answer = Outcome | Later[Outcome] | None


def reply_in(outcome: Outcome) -> Reply | CloseConnection:
    """What is sent of it."""
    if isinstance(outcome, Throttled):
        return outcome.reply or []
    return outcome.reply if isinstance(outcome, NewTerms) else outcome
