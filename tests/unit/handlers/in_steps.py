"""Answers that handlers work out in steps, as tests see them that ask a handler by itself."""

from __future__ import annotations

from typing import Any

from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, finish


def settled(answer: Any) -> Any:
    """What comes of an answer, as far as it can without waiting: a Later that is open stays."""
    while True:
        if isinstance(answer, InSteps):
            answer = finish(answer.steps)
        elif isinstance(answer, Later) and answer.is_resolved:
            answer = answer.value
        else:
            return answer
