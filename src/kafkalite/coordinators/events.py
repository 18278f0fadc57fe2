"""What a shard decides on: requests, timers, and what follows other decisions.

Owns the one word for it, which says what an event is answered with, so that who submits it need not
ask. Nothing here has behaviour.
"""

from __future__ import annotations

from typing import Generic, TypeVar

R_co = TypeVar("R_co", covariant=True)


class Event(Generic[R_co]):
    """Answered by an R, or refused: then a KafkaError comes in its place. Nothing is changed by an
    event that is refused, unless its records could not be written, or be committed in time."""

    __slots__ = ()

    @property
    def subject(self) -> str:
        """Whose it is, as a line of the log has it."""
        return ""
