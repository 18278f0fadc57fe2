"""Programs under a broker that makes legal choices: one schedule, many seeds, the least that fails.

    check(kafka, my_program, runs=50)

Owns how a program is run again from the same beginning, and how a schedule is made smaller that it
fails under. What is chosen is exploring.py's. Hypothesis is imported where it is asked for.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from kafkalite.testing.exploring import RATE, Explorer, kinds_named
from kafkalite.testing.legal import KINDS
from kafkalite.testing.schedule import Schedule, Step

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from kafkalite.testing.embedded import EmbeddedKafka, Snapshot

__all__ = ["KINDS", "RATE", "Explorer", "Failure", "Schedule", "Step", "check", "run", "schedules"]

RUNS = 50
# In search of a smaller schedule.
MOST_RERUNS = 40
RERUN_SECONDS = 30
NOT_AGAIN = (
    "run with that once more it did not fail: it depends on something besides the broker, such as "
    "time or threads"
)
_NOT_OURS = (KeyboardInterrupt, SystemExit, GeneratorExit)
_NO_FAILURES = ("Skipped", "XFailed", "Exit")  # what pytest raises that says nothing of a program

Program = Callable[["EmbeddedKafka"], Awaitable[Any] | Any]


def run(
    kafka: EmbeddedKafka,
    program: Program,
    schedule: Iterable[Step],
    *,
    snapshot: Snapshot | None = None,
) -> Any:
    """What a program returns that begins with a clean broker, or with what a snapshot holds, and
    meets what a schedule says."""
    _begin(kafka, snapshot)
    with kafka.explore(schedule=schedule):
        return _result(program(kafka))


def check(
    kafka: EmbeddedKafka,
    program: Program,
    *,
    runs: int = RUNS,
    seeds: Iterable[int | str] | None = None,
    kinds: Iterable[str] | None = None,
    rate: float = RATE,
) -> None:
    """Runs a program with so many seeds, each time from what the broker has now. What it raises is
    raised with a note: the seed, and the smallest schedule that was found to do the same."""
    chosen = _seeds(runs, seeds)
    then = kafka.snapshot()
    wanted = None if kinds is None else kinds_named(kinds)
    for seed in chosen:
        _begin(kafka, then)
        with kafka.explore(seed, kinds=wanted, rate=rate) as explorer:
            error = _error_of(kafka, program)
        if error is not None:
            _Search(kafka, program, then, seed).fail(explorer.schedule, error)


def _seeds(runs: int, seeds: Iterable[int | str] | None) -> Iterator[int | str]:
    given = iter(range(1, runs + 1) if seeds is None else seeds)
    for first in given:
        return chain([first], given)
    raise ValueError(f"runs={runs!r}, seeds={seeds!r}: nothing would be run")


@dataclass(frozen=True)
class Failure:
    """What a program cannot stand."""

    seed: int | str
    schedule: Schedule  # the smallest that was found
    whole: Schedule  # what was done when it failed first
    fails_again: bool = True  # with the same schedule

    def __str__(self) -> str:
        if not self.schedule and self.fails_again:
            return f"seed {self.seed!r} of kafkalite's explorer: it fails also when nothing is done"
        lines = [f"    {step}" for step in self.schedule]
        return "\n".join([
            f"seed {self.seed!r} of kafkalite's explorer: it fails when the broker does this"
            f" ({len(self.schedule)} of {len(self.whole)} acts):",
            *lines,
            *([] if self.fails_again else [NOT_AGAIN]),
            f"the same again: kafka.explore(schedule={self.schedule!r})",
        ])  # fmt: skip


class _Search:
    """For a schedule that is smaller, and that a program fails under in the same way."""

    def __init__(
        self, kafka: EmbeddedKafka, program: Program, then: Snapshot, seed: int | str
    ) -> None:
        self._kafka, self._program, self._then, self._seed = kafka, program, then, seed
        self._left = MOST_RERUNS
        self._deadline = time.monotonic() + RERUN_SECONDS

    def fail(self, whole: Schedule, error: BaseException) -> None:
        """Raises what the program raises under the smallest, which is run once more in the end:
        what is shown of the broker is of that run."""
        schedule, error = self._smallest(whole, error)
        again = self._run(schedule, error)
        failure = Failure(self._seed, schedule, whole, again is not None)
        error = again or error
        error.add_note(str(failure))
        error.kafkalite_failure = failure  # type: ignore[attr-defined]
        raise error

    def _smallest(self, schedule: Schedule, error: BaseException) -> tuple[Schedule, BaseException]:
        while True:
            for shorter in (*schedule.each_shorter(), *schedule.each_earlier()):
                found = self._try(shorter, error)
                if found is not None:
                    schedule, error = shorter, found
                    break
            else:
                return schedule, error

    def _try(self, schedule: Schedule, error: BaseException) -> BaseException | None:
        """What it raises then, if that is of the same type."""
        if self._left == 0 or time.monotonic() > self._deadline:
            return None
        self._left -= 1
        return self._run(schedule, error)

    def _run(self, schedule: Schedule, error: BaseException) -> BaseException | None:
        _let_go(error)
        _begin(self._kafka, self._then)
        with self._kafka.explore(schedule=schedule):
            found = _error_of(self._kafka, self._program)
        return found if type(found) is type(error) else None


def _begin(kafka: EmbeddedKafka, snapshot: Snapshot | None) -> None:
    if snapshot is None:
        kafka.reset()
    else:
        kafka.restore(snapshot)


def _result(result: Any) -> Any:
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(what: Awaitable[Any]) -> Any:
    return await what


def _error_of(kafka: EmbeddedKafka, program: Program) -> BaseException | None:
    try:
        _result(program(kafka))
    except _NOT_OURS:
        raise
    except BaseException as error:  # what pytest.fail() raises is no Exception
        if type(error).__name__ in _NO_FAILURES:
            raise
        return error
    return None


def _let_go(error: BaseException) -> None:
    """Of the clients that a program left when it failed: they would disturb the next run."""
    traceback.clear_frames(error.__traceback__)
    gc.collect()


def schedules(
    *, kinds: Sequence[str] | None = None, most: int = 4, highest: int = 8
) -> SearchStrategy[Schedule]:
    """A strategy of Hypothesis: at most so many steps, of these kinds or all, each at one of the
    first requests where it is legal. Few and early ones are the simplest."""
    from hypothesis import strategies as st

    names = st.sampled_from(kinds_named(kinds))
    step = st.builds(Step, kind=names, number=st.integers(1, highest))
    return st.lists(step, max_size=most, unique=True).map(Schedule)
