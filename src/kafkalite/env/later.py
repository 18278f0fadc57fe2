"""A value that comes later: the one kind of promise in the broker.

Owns the hand-over of a single value to the callbacks that wait for it, in the order they came, and
what is made of one slot: `map`, `then_ask` and `all`. It never switches threads and never runs a
coroutine. Errors travel as values. What is raised on the way, by a function that makes something of
a value, ends the wait, too: all slots that are made of this one have failed, and it is raised to
whoever reads one of them. Invariant: a slot is filled exactly once, and everybody who waits is told
exactly once.

A slot that is dropped unresolved keeps somebody waiting for ever, and nothing else tells of it:
`watch_waits` takes down where each slot is made until it is resolved, for tests, simulations and a
broker that hangs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import FrameType
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

# Who waits: what is done with the value, and with what went wrong on the way.
Waiting = tuple[Callable[[T], None], Callable[[Exception], None] | None]

_UNRESOLVED: Any = object()
# What is asked of these is a slot of who asks.
_OF_CALLERS = (__name__, "kafkalite.env.slicing")

# Every slot that is not resolved, and where it was made, while somebody watches.
_open: dict[Later[Any], str] | None = None


class _Failed:
    """In place of a value: what went wrong on the way to it."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class Later(Generic[T]):
    """A slot for one value; whoever owns the answer resolves it, whoever needs it calls `then`."""

    __slots__ = ("_callbacks", "_value")

    def __init__(self) -> None:
        self._value: Any = _UNRESOLVED
        self._callbacks: list[Waiting[T]] | None = None
        if _open is not None:
            _open[self] = _place(sys._getframe(0))

    @classmethod
    def of(cls, value: T) -> Later[T]:
        """A slot that is already filled."""
        later: Later[T] = cls()
        later._value = value
        if _open is not None:
            del _open[later]
        return later

    @staticmethod
    def all(laters: Sequence[Later[R]]) -> Later[list[R]]:
        """All values, in the order of the slots, once the last one has come."""
        every: Later[list[R]] = Later()
        missing = 1 + len(laters)

        def arrived(_: object) -> None:
            nonlocal missing
            missing -= 1
            if missing == 0:
                _fill(every, True, _values, laters)

        for later in laters:
            if not later.is_resolved:
                later.then(arrived, arrived)
            else:
                missing -= 1
        arrived(None)
        return every

    @property
    def is_resolved(self) -> bool:
        return self._value is not _UNRESOLVED

    @property
    def value(self) -> T:
        value = self._value
        assert value is not _UNRESOLVED, "the value of a Later was read before it came"
        if type(value) is _Failed:
            raise value.error
        return cast(T, value)

    def resolve(self, value: T) -> None:
        """Fills the slot and tells everyone who waits, in order; a second call is a bug of ours.
        What a callback raises is raised when all have been told."""
        assert self._value is _UNRESOLVED, "a Later was resolved twice"
        self._value = value
        if _open is not None:
            _open.pop(self, None)
        waiting, self._callbacks = self._callbacks, None
        failures: list[Exception] = []
        for callback, failed in waiting or ():
            try:
                self.then(callback, failed)
            except Exception as failure:  # noqa: BLE001 - those behind it wait for the value, too
                failures.append(failure)
        if failures:
            raise _as_one(failures)

    def fail(self, error: Exception, *, is_read: bool = True) -> None:
        """Fills the slot with what went wrong on the way to the value. Unless it `is_read` later,
        it is raised when nobody waits for it, so that it is heard of."""
        is_heard = is_read or self._callbacks is not None
        failed: Any = _Failed(error)
        self.resolve(failed)
        if not is_heard:
            raise error

    def map(self, change: Callable[[T], R]) -> Later[R]:
        """A slot for what becomes of the value."""
        changed: Later[R] = Later()
        if self.is_resolved:
            self.then(partial(_fill, changed, True, change), changed.fail)
        else:
            self.then(
                partial(_fill, changed, False, change), partial(changed.fail, is_read=False)
            )
        return changed

    def then_ask(self, ask: Callable[[T], Later[R]]) -> Later[R]:
        """A slot for what somebody answers who is asked with the value."""
        answer: Later[R] = Later()
        fail = partial(answer.fail, is_read=self.is_resolved)
        self.map(ask).then(lambda asked: asked.then(answer.resolve, fail), fail)
        return answer

    def then(
        self, callback: Callable[[T], None], failed: Callable[[Exception], None] | None = None
    ) -> None:
        """Calls back with the value, at once when it is here, else when it comes; or with what went
        wrong on the way to it, which is raised where there is nobody to be told."""
        value = self._value
        if value is _UNRESOLVED:
            if self._callbacks is None:
                self._callbacks = []
            self._callbacks.append((callback, failed))
        elif type(value) is not _Failed:
            callback(value)
        elif failed is not None:
            failed(value.error)
        else:
            raise value.error


def _fill(later: Later[R], is_read: bool, make: Callable[[S], R], given: S) -> None:
    """With what is made of it, or with what goes wrong in that."""
    try:
        made = make(given)
    except Exception as error:  # noqa: BLE001 - who waits is told, and decides what it means
        later.fail(error, is_read=is_read)
    else:
        later.resolve(made)


def resolve_each(due: Iterable[tuple[Later[R], R]]) -> None:
    """Fills one slot after the other. What one of those who wait makes of it keeps no other slot
    open: it is raised when all are filled."""
    failures: list[Exception] = []
    for later, value in due:
        try:
            later.resolve(value)
        except Exception as failure:  # noqa: BLE001 - those behind it wait, too
            failures.append(failure)
    if failures:
        raise _as_one(failures)


def _values(laters: Sequence[Later[R]]) -> list[R]:
    return [later.value for later in laters]


def _as_one(failures: list[Exception]) -> Exception:
    first, *others = failures
    return ExceptionGroup("several of those who waited failed", failures) if others else first


# --- what is open ---------------------------------------------------------------------------------


def watch_waits(is_on: bool = True) -> None:
    """From now on takes down which slots are open; those of before are forgotten."""
    global _open
    _open = {} if is_on else None


def forget_waits() -> None:
    """Those that are open now ended with the process, as a simulation has it."""
    if _open is not None:
        _open.clear()


def open_waits(package: str = "kafkalite") -> Counter[str]:
    """How many slots are open of each kind, which is where in the package they were made."""
    made = (_open or {}).values()
    return Counter(place for place in made if place.partition(".")[0] == package)


def _place(frame: FrameType | None) -> str:
    """The first line outside of these modules, as `kafkalite.handlers.fetch:57`."""
    while frame is not None and frame.f_globals.get("__name__") in _OF_CALLERS:
        frame = frame.f_back
    if frame is None:
        return "nowhere"
    return f"{frame.f_globals.get('__name__', '')}:{frame.f_lineno}"
