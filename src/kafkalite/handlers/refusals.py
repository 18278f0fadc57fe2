"""What a coordinator refuses, as a response tells it.

Owns nothing. A refusal is a KafkaError in place of the answer; what it reads as is the handler's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafkalite.protocol.errors import KafkaError

R = TypeVar("R")


def or_refused(refused: Callable[[KafkaError], R]) -> Callable[[R | KafkaError], R]:
    """The answer as it is, or what is told in its place."""

    def told(answer: R | KafkaError) -> R:
        return refused(answer) if isinstance(answer, KafkaError) else answer

    return told
