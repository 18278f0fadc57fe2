"""Long work between everything else: a slice of it in each turn of the loop.

Owns what is under way and whose share is next. Work is steps: a generator that yields after each
step of at most some milliseconds, better some tenths of one, and returns what came of it. How many
steps make a slice is told by the clock, and by their number where time stands still. Works take
turns by shares of a slice; of those in one line the first alone does. Work whose owner has gone, or
that nobody waits for any more, is dropped, also from within a step of its own. What fails is lost,
and the failure is the loop's to tell, or that of who began it. Invariants: no turn is longer than a
slice and one step, however much is under way; what was begun is done, or lost, once.

Who decides without a clock (the shards of coordinators) has a `Pace` instead: so much in each
stretch of time, for all who share it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import ExitStack
from typing import Any, TypeAlias, TypeVar

from kafkalite.env.clock import Clock
from kafkalite.env.collector import Collector
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]

SLICE_MS = 2
STEPS_PER_SLICE = 32
STEPS_PER_SHARE = 8
# What is done of new work before it has to wait; SLICE_MS of that at most in each stretch of time.
STEPS_AT_ONCE = 8
STRETCH_MS = 10
# Of a list, each element of which takes some microseconds.
ELEMENTS_PER_STEP = 16
# The same when each is only looked at.
LOOKS_PER_STEP = 256


def finish(steps: Steps[T]) -> T:
    """What comes of it, all in one go."""
    try:
        while True:
            next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result


@dataclass(slots=True, frozen=True)
class InSteps:
    """In place of an answer: what works it out, for long. It may raise what who answers may raise,
    and what comes of it may be a Later."""

    steps: Steps[Any]


def begun(steps: Steps[T]) -> T | InSteps:
    """What comes of it when that is no more than one step; else what is left of it."""
    try:
        next(steps)
    except StopIteration as stop:
        result: T = stop.value
        return result
    return InSteps(steps)


def in_steps(items: Iterable[T]) -> Steps[list[T]]:
    """All of them, some of which are made in each step; a few are no more than one."""
    made: list[T] = []
    for item in items:
        if made and len(made) % ELEMENTS_PER_STEP == 0:
            yield
        made.append(item)
    return made


def chosen(items: Iterable[T], is_wanted: Callable[[T], bool]) -> Steps[list[T]]:
    """Those of them that are wanted."""
    found: list[T] = []
    for number, item in enumerate(items, 1):
        if is_wanted(item):
            found.append(item)
        if number % LOOKS_PER_STEP == 0:
            yield
    return found


def emptied(what: dict[Any, Any] | list[Any]) -> Steps[None]:
    """Lets go of what lies in it, some in each step; nobody else may need it. To free a hundred
    thousand objects at once takes 10 ms."""
    while len(what) > LOOKS_PER_STEP:
        if isinstance(what, list):
            del what[-LOOKS_PER_STEP:]
        else:
            for _ in range(LOOKS_PER_STEP):
                what.popitem()
        yield
    what.clear()


def outcome_of(answer: Any) -> Steps[Any]:
    """The answer itself, whichever way it comes."""
    return (yield from answer.steps) if type(answer) is InSteps else answer


def caught(steps: Steps[T]) -> Steps[T | Exception]:
    """What goes wrong is what comes of it."""
    try:
        return (yield from steps)
    except Exception as error:  # noqa: BLE001 - whoever waits for it decides what it means
        return error


def _ignore() -> None:
    pass


def _always() -> bool:
    return True


@dataclass(slots=True, eq=False)
class Work:
    """Something long, and who is told of its end: `done` or, when it failed or was dropped,
    `lost`."""

    steps: Steps[Any]
    done: Callable[[Any], None]
    lost: Callable[[], None] = _ignore
    is_wanted: Callable[[], bool] = _always  # asked before each share
    owner: object = None
    held_bytes: int = 0  # kept in memory meanwhile
    is_dropped: bool = False


class Slices:
    """All long work of one loop."""

    def __init__(self, clock: Clock, collector: Collector | None = None) -> None:
        self._clock = clock
        self._collector = collector  # which rests while anything is under way
        self.lines: dict[Hashable, deque[Work]] = {}  # in the order of their shares; to be read
        self._singles = 0
        self._held_bytes = 0
        self._at_once_ms = self._spent_ms = 0
        self._is_due = False
        self._at_work: list[Work] = []  # whose step runs, and in it another's that is done at once

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))

    @property
    def held_bytes(self) -> int:
        """What all that is under way keeps in memory."""
        return self._held_bytes

    def run(self, steps: Steps[T], done: Callable[[T], None]) -> None:
        """Has the first steps done at once, and what is left between everything else; `done` is
        told what came of it."""
        self.begin(Work(steps, done))

    def later(self, steps: Steps[T]) -> Later[T]:
        """The same, for who waits for what comes of it."""
        later: Later[T] = Later()

        def done(outcome: T | Exception) -> None:
            if isinstance(outcome, Exception):
                later.fail(outcome)
            else:
                later.resolve(outcome)

        self.run(caught(steps), done)
        return later

    def soon(self, steps: Steps[T]) -> Later[T]:
        """The same for what is mostly short: a first step is done at once whatever else was, and
        may raise."""
        first = begun(steps)
        return self.later(first.steps) if isinstance(first, InSteps) else Later.of(first)

    def begin(self, work: Work) -> None:
        """The same for any work."""
        if not self.is_done_at_once(work):
            self.enter(work)

    def is_done_at_once(self, work: Work) -> bool:
        """Does the first steps, unless much was done at once already; who is not done enters."""
        began_ms = self._clock.monotonic_ms()
        if not 0 <= began_ms - self._at_once_ms < STRETCH_MS:
            self._at_once_ms, self._spent_ms = began_ms, 0
        left_ms = SLICE_MS - self._spent_ms
        if left_ms <= 0:
            return False
        try:
            is_done, outcome, _ = self._advance(work, STEPS_AT_ONCE, began_ms + left_ms)
        except BaseException:
            _lose([work])
            raise
        finally:
            self._spent_ms += self._clock.monotonic_ms() - began_ms
        if is_done and not work.is_dropped:
            work.done(outcome)
        return is_done or work.is_dropped

    def enter(self, work: Work, line: Hashable | None = None) -> None:
        """Has the rest done between everything else, after what is in the same line already."""
        if line is None:
            self._singles += 1
            line = self._singles
        if not self.lines and self._collector is not None:
            self._collector.rest(self)
        self.lines.setdefault(line, deque()).append(work)
        self._held_bytes += work.held_bytes
        self._go_on()

    def drop(self, owner: object) -> None:
        """Does no more of what is this owner's."""
        dropped = []
        for key, line in list(self.lines.items()):
            dropped += [each for each in line if each.owner is owner]
            self._set_line(key, deque(each for each in line if each.owner is not owner))
        self._held_bytes -= sum(each.held_bytes for each in dropped)
        try:
            _lose(dropped + [each for each in self._at_work if each.owner is owner])
        finally:
            self._go_on()

    def _turn(self) -> None:
        self._is_due = False
        end_ms, left = self._clock.monotonic_ms() + SLICE_MS, STEPS_PER_SLICE
        try:
            while self.lines and left > 0:
                left -= self._share(min(left, STEPS_PER_SHARE), end_ms)
                if self._clock.monotonic_ms() >= end_ms:
                    break
        finally:
            self._go_on()
            if self._collector is not None:
                self._collector.still()

    def _share(self, steps: int, end_ms: int) -> int:
        """So many steps at most for the line whose turn it is; how many it took."""
        key, line = next(iter(self.lines.items()))
        work = line[0]
        is_over, is_done, outcome, taken = True, False, None, 1
        try:
            if work.is_wanted():
                is_done, outcome, taken = self._advance(work, steps, end_ms)
                is_over = is_done
        finally:  # also when it failed, which is nobody else's matter
            line = self.lines.pop(key, deque())
            if is_over and not work.is_dropped:
                line.popleft()
                self._held_bytes -= work.held_bytes
            self._set_line(key, line)  # behind the others
            if is_over and not is_done:
                _lose([work])
        if is_done and not work.is_dropped:
            work.done(outcome)
        return taken

    def _set_line(self, key: Hashable, line: deque[Work]) -> None:
        if line:
            self.lines[key] = line
        else:
            self.lines.pop(key, None)

    def _advance(self, work: Work, most: int, end_ms: int) -> tuple[bool, Any, int]:
        """Whether it is done, what came of it, and how many steps that took."""
        monotonic_ms, steps = self._clock.monotonic_ms, work.steps
        taken = 0
        self._at_work.append(work)
        try:
            while taken < most:
                taken += 1
                next(steps)
                if work.is_dropped or monotonic_ms() >= end_ms:
                    break
        except StopIteration as stop:
            return True, stop.value, taken
        finally:
            self._at_work.pop()
        return False, None, taken

    def _go_on(self) -> None:
        """Has a turn come, one at a time whoever asks."""
        if not self.lines:
            if self._collector is not None:
                self._collector.go_on(self)
        elif not self._is_due:
            self._is_due = True
            self._clock.call_later(0, self._turn)


def _lose(works: list[Work]) -> None:
    """Tells each of them that has not heard of it, whatever comes of telling another."""
    with ExitStack() as telling:
        for work in reversed(works):
            if not work.is_dropped:
                work.is_dropped = True
                telling.callback(work.lost)


class Pace:
    """What is left to do in the present stretch of time."""

    def __init__(self, stretch_ms: int, most: int) -> None:
        self._stretch_ms = stretch_ms
        self._most = most
        self._begun_ms = -stretch_ms
        self.left = 0

    def at(self, now_ms: int) -> None:
        if not 0 <= now_ms - self._begun_ms < self._stretch_ms:
            self._begun_ms, self.left = now_ms, self._most

    def pause_ms(self, now_ms: int) -> int:
        """How long until there is something left again."""
        return self._begun_ms + self._stretch_ms - now_ms
