"""Finds a shorter conversation that differs in the same place: fewer steps, then shorter lists."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.differential.generating import Step
from tests.differential.running import Outcome, Runner

MAX_RUNS, MAX_S = 150, 60.0


def shrink(runner: Runner, outcome: Outcome) -> Outcome:
    """The shortest found in a bounded number of runs and a bounded time."""
    signature = outcome.differences[0].signature
    runs, deadline = 0, time.monotonic() + MAX_S

    def still(steps: list[Step]) -> Outcome | None:
        nonlocal runs
        runs += 1
        is_in_time = runs <= MAX_RUNS and time.monotonic() < deadline
        tried = runner.run(steps) if is_in_time else Outcome()
        found = {each.signature for each in tried.differences}
        return tried if signature in found else None

    best = _drop_steps(outcome, still)
    return _shorten_lists(best, still)


def _drop_steps(best: Outcome, still: Callable[[list[Step]], Outcome | None]) -> Outcome:
    """Halves, quarters and at last single steps; the last step is the one that differs."""
    size = max(1, (len(best.steps) - 1) // 2)
    while True:
        position = 0
        while position < len(best.steps) - 1:
            last = len(best.steps) - 1
            shorter = best.steps[:position] + best.steps[min(position + size, last) :]
            found = still(shorter)
            if found is None:
                position += size
            else:
                best = found
        if size == 1:
            return best
        size //= 2


def _shorten_lists(best: Outcome, still: Callable[[list[Step]], Outcome | None]) -> Outcome:
    improved = True
    while improved:
        improved = False
        for shorter in _shorter(best.steps):
            found = still(shorter)
            if found is not None:
                best, improved = found, True
                break
    return best


def _shorter(steps: list[Step]) -> Iterator[list[Step]]:
    """Each way to leave out one element of one list of one request."""
    for number, step in enumerate(steps):
        for place, length in enumerate(map(len, _lists(step.request))):
            for index in range(length):
                changed = copy.deepcopy(step)
                del list(_lists(changed.request))[place][index]
                yield [*steps[:number], changed, *steps[number + 1 :]]


def _lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
        for each in value:
            yield from _lists(each)
    elif hasattr(value, "__slots__") and not hasattr(value, "build"):
        for name in value.__slots__:
            yield from _lists(getattr(value, name))
