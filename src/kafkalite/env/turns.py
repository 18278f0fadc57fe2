"""A watch on the event loops: whose turn was long, and what it was at.

Owns one thread for all loops of the process, which is there while one of them runs. Some twenty
times a second it looks at each: a loop that is at work is asked to answer, and when no answer comes
for a while the stack of its thread is taken. What that costs a loop is a callback each time, and an
idle one nothing. Invariant: a turn that lasts LONG_MS and two looks more is always noticed.

A machine that is busy with other things makes turns long, too; so it is told beside the time how
much of it the loop's own thread computed.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from kafkalite.env import collector
from kafkalite.env.dataclasses import dataclass

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 0.05
LONG_MS = 100
SAY_EVERY_S = 10.0  # at most so often, however many there are
WORKED_S = 0.001  # who computed less since the last look is idle

_PACKAGE = Path(__file__).parents[1]
_OUTERMOST = 12  # places of a stack that are told
# A function of that name in a module says what one of the module's frames is at.
DESCRIBE = "describe_turn"
# Names a module's functions during which nobody is there who could wait.
ALONE = "TURNS_ALONE"
_getcpuclockid: Callable[[int], int] | None = getattr(time, "pthread_getcpuclockid", None)


@dataclass(slots=True, frozen=True)
class LongTurn:
    """For so long the loop came round to nobody else."""

    wall_ms: int
    cpu_ms: int  # -1 where the machine does not tell
    doing: str  # the request, if it was one
    places: tuple[str, ...]  # the innermost first

    def __str__(self) -> str:
        computed = f", {self.cpu_ms} ms of it computing" if self.cpu_ms >= 0 else ""
        what = self.doing or "work of its own"
        where = " < ".join(self.places) or "code that shows no stack"
        return f"{self.wall_ms} ms{computed}: {what}, in {where}"


class Turns:
    """All loops of a process that run."""

    def __init__(self) -> None:
        self.count = 0  # long ones since the process began
        self.longest: LongTurn | None = None
        self.listeners: list[Callable[[LongTurn], None]] = []
        self._lock = threading.Lock()
        self._loops: list[_Loop] = []
        self._looking: _Looking | None = None
        self._said_s = -SAY_EVERY_S
        self._unsaid = 0

    @contextmanager
    def watching(self, loop: AbstractEventLoop) -> Iterator[None]:
        """For the thread that is about to run the loop, until it has."""
        watched = _Loop(loop)
        with self._lock:
            self._loops.append(watched)
            if self._looking is None or not self._looking.is_alive():
                self._looking = _Looking(self)
                self._looking.start()
        try:
            yield
        finally:
            self._leave(watched)

    def _leave(self, watched: _Loop) -> None:
        ended: _Looking | None = None
        with self._lock:
            self._loops.remove(watched)
            if not self._loops:
                ended, self._looking = self._looking, None
        if ended is not None:
            ended.end()
        self._notice(watched.heard())

    def look(self, late_s: float) -> None:
        """Looks at each loop once; so much later than was meant."""
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)  # which has them: a circle, of all stacks there are
        now_s = time.monotonic()
        for watched in tuple(self._loops):
            frame = frames.get(watched.thread_id)
            if frame is not None:
                self._notice(watched.look(now_s, late_s, frame))

    def _notice(self, turn: LongTurn | None) -> None:
        if turn is None:
            return
        self.count += 1
        if self.longest is None or turn.wall_ms > self.longest.wall_ms:
            self.longest = turn
        for listener in tuple(self.listeners):
            listener(turn)
        now_s = time.monotonic()
        if now_s - self._said_s < SAY_EVERY_S:
            self._unsaid += 1
            return
        more = f" ({self._unsaid} more since the last such line)" if self._unsaid else ""
        self._said_s, self._unsaid = now_s, 0
        logger.warning("nobody was served for %s%s", turn, more)


class _Looking(threading.Thread):
    """The thread that looks."""

    def __init__(self, turns: Turns) -> None:
        super().__init__(name="kafkalite-turns", daemon=True)
        self._turns = turns
        self._is_over = threading.Event()

    def run(self) -> None:
        due_s = time.monotonic() + LOOK_EVERY_S
        while not self._is_over.wait(LOOK_EVERY_S):
            now_s = time.monotonic()
            self._turns.look(max(0.0, now_s - due_s))
            due_s = now_s + LOOK_EVERY_S

    def end(self) -> None:
        self._is_over.set()
        self.join()


@dataclass(slots=True)
class _Question:
    """What the loop is to answer, and when it did."""

    asked_s: float
    cpu_s: float
    heard_s: float | None = None
    heard_cpu_s: float = 0.0
    doing: str = ""
    places: tuple[str, ...] = ()
    is_alone: bool = False

    def hear(self) -> None:
        self.heard_cpu_s = time.thread_time()
        self.heard_s = time.monotonic()


class _Loop:
    """One loop, as the watch knows it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.thread_id = threading.get_ident()
        self._loop = loop
        self._cpu_clock = _getcpuclockid(self.thread_id) if _getcpuclockid else None
        self._cpu_s = time.thread_time()
        self._question: _Question | None = None

    def look(self, now_s: float, late_s: float, frame: FrameType) -> LongTurn | None:
        """The turn that was long, once it is over."""
        before_s, self._cpu_s = self._cpu_s, self._computed()
        worked_s = self._cpu_s - before_s
        question = self._question
        if question is None:
            if worked_s > WORKED_S or not _is_idle(frame):
                self._ask(now_s)
            return None
        if question.heard_s is not None:
            return self.heard()
        # When nobody got to run, this thread neither, the loop is not to blame; but it is when it
        # computed without letting go of the interpreter.
        question.asked_s += max(0.0, late_s - max(worked_s, 0.0))
        if not question.places and (now_s - question.asked_s) * 1000 >= LONG_MS:
            question.doing, question.places = _described(frame)
            question.is_alone = _is_alone(frame)
        return None

    def heard(self) -> LongTurn | None:
        """What came of the question, if it was answered late."""
        question = self._question
        if question is None or question.heard_s is None:
            return None
        self._question = None
        wall_ms = round((question.heard_s - question.asked_s) * 1000)
        if wall_ms < LONG_MS or question.is_alone:
            return None
        cpu_ms = round((question.heard_cpu_s - question.cpu_s) * 1000) if self._cpu_clock else -1
        return LongTurn(wall_ms, cpu_ms, question.doing, question.places)

    def _ask(self, now_s: float) -> None:
        question = _Question(now_s, self._cpu_s)
        with suppress(RuntimeError):  # a loop that has just been closed
            self._loop.call_soon_threadsafe(question.hear)
            self._question = question

    def _computed(self) -> float:
        if self._cpu_clock is None:
            return self._cpu_s
        try:
            return time.clock_gettime(self._cpu_clock)
        except OSError:  # its thread has just ended
            return self._cpu_s


def _is_idle(frame: FrameType) -> bool:
    """Whether the loop waits for something to come: uvloop without a frame of its own."""
    return frame.f_code is run.__code__ or frame.f_globals.get("__name__") == "selectors"


def _is_alone(frame: FrameType) -> bool:
    at: FrameType | None = frame
    while at is not None:
        if at.f_code.co_name in at.f_globals.get(ALONE, ()):
            return True
        at = at.f_back
    return False


def _described(frame: FrameType) -> tuple[str, tuple[str, ...]]:
    """What the stack that ends in this frame is at, and where."""
    doing, places = "", []
    at: FrameType | None = frame
    while at is not None and at.f_code is not run.__code__:
        describe = at.f_globals.get(DESCRIBE)
        if not doing and describe is not None:
            with suppress(Exception):  # the frame goes on meanwhile
                doing = describe(at.f_locals) or ""
        if at is frame or _PACKAGE in Path(at.f_code.co_filename).parents:
            places.append(_place(at))
        at = at.f_back
    return doing, tuple(places[:_OUTERMOST])


def _place(frame: FrameType) -> str:
    module = frame.f_globals.get("__name__", "?")
    return f"{module}:{frame.f_lineno} {frame.f_code.co_name}"


def run(loop: AbstractEventLoop) -> None:
    """Runs the loop until it is stopped, and watches it."""
    try:
        with watch.watching(loop):
            loop.run_forever()
    finally:
        collector.of_process.wake()


watch = Turns()
