"""What is done with a handler's answer, whenever and in whatever way it comes.

Owns nothing. What is no response (a refusal, the connection's end) is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps


def afterwards(answer: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(answer, Later):
        return answer.map(lambda came: afterwards(came, change))
    if type(answer) is InSteps:
        return InSteps(_in_steps(answer.steps, change))
    return change(answer) if hasattr(answer, "SPEC") else answer


def _in_steps(steps: Steps[Any], change: Callable[[Any], Any]) -> Steps[Any]:
    answer = afterwards((yield from steps), change)
    return (yield from answer.steps) if type(answer) is InSteps else answer
