"""What a coordinator refuses, as a response tells it.

Owns nothing. A refusal is a KafkaError in place of the answer; what it reads as is the handler's.
What was refused before a coordinator was asked stands behind what it answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kafkalite.protocol.errors import KafkaError

R = TypeVar("R")


def or_refused(refused: Callable[[KafkaError], R]) -> Callable[[R | KafkaError], R]:
    """The answer as it is, or what is told in its place."""

    def told(answer: R | KafkaError) -> R:
        return refused(answer) if isinstance(answer, KafkaError) else answer

    return told


def with_refused(name: str, refused: list[Any]) -> Callable[[R | KafkaError], R | KafkaError]:
    """The answer with these at the end of the list of this name."""

    def told(answer: R | KafkaError) -> R | KafkaError:
        if not isinstance(answer, KafkaError):
            getattr(answer, name).extend(refused)
        return answer

    return told
