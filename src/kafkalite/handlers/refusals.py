"""What a coordinator refuses, as a response tells it.

Owns nothing. A refusal is a KafkaError in place of the answer; what it reads as is the handler's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError

R = TypeVar("R")


def or_refused(asked: Later[R | KafkaError], refused: Callable[[KafkaError], R]) -> Later[R]:
    """The answer, or what is told in its place."""

    def answer(given: R | KafkaError) -> R:
        return refused(given) if isinstance(given, KafkaError) else given

    return asked.map(answer)
