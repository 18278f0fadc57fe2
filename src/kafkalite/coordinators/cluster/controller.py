"""What brokers ask of their controller, whichever way it is reached.

Owns the one verb, and how an answer says that there is none. Invariant: `submit` never raises, and
an answer comes once: the event's own, or a KafkaError in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeGuard, TypeVar

from kafkalite.coordinators.events import Event
from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError

R = TypeVar("R")


class OutcomeUnknown(KafkaError):
    """What was asked is decided, and may last or not: an answer would say more than is known, so
    who waits for one is told by the end of its connection."""


class Controller(Protocol):
    """Decides for the whole cluster."""

    def submit(self, event: Event[R]) -> Later[R | KafkaError]:
        """The answer comes when everybody here is through with what was changed, and the records
        are as durable as is configured. For a KafkaError nothing was changed; but for
        OutcomeUnknown."""
        ...


class OwnController(Controller, Protocol):
    """As a broker has its own: one that also says what lasts."""

    def once_durable(self, then: Callable[[], None]) -> None:
        """Goes on when all records so far are on stable storage."""
        ...


def is_refusal(answer: object) -> TypeGuard[KafkaError]:
    """Whether an answer says that nothing was changed, and why."""
    return isinstance(answer, KafkaError) and not isinstance(answer, OutcomeUnknown)
