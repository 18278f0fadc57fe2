"""Answers that take long to work out, a slice at a time between those to others.

Owns the choice between an answer now and one that comes later.
"""

from __future__ import annotations

from typing import TypeVar

from kafkalite.env.later import Later
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.records.steps import Steps
from kafkalite.replication.examining import FREE_SLICES, advance

T = TypeVar("T")


def in_slices(context: Context, steps: Steps[T], held_bytes: int) -> T | Later[T]:
    """What comes of it, now if that is soon; raises KafkaError also when too much waits already.

    `held_bytes` is what it keeps in memory meanwhile. What fails later must not raise.
    """
    outcome = advance(steps, FREE_SLICES)
    if isinstance(outcome, KafkaError):
        raise outcome
    if outcome is not None:
        return outcome
    later: Later[T] = Later()

    def done(outcome: T | KafkaError) -> None:
        assert not isinstance(outcome, KafkaError), outcome
        later.resolve(outcome)

    context.examiner.read(steps, held_bytes, done)
    return later
