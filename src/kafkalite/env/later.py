"""A value that comes later: the one kind of promise in the broker.

Owns the hand-over of a single value to the callbacks that wait for it, in the order they came. It
never carries an exception (errors travel as values), never switches threads and never runs a
coroutine. Invariant: it is resolved exactly once, and every callback is called exactly once.

A slot that is dropped unresolved keeps somebody waiting for ever, and nothing else tells of it:
`watch_waits` takes down where each slot is made until it is resolved, for tests, simulations and a
broker that hangs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

_UNRESOLVED: Any = object()
_HERE = __name__

# Every slot that is not resolved, and where it was made, while somebody watches.
_open: dict[Later[Any], str] | None = None


class Later(Generic[T]):
    """A slot for one value; whoever owns the answer resolves it, whoever needs it calls `then`."""

    __slots__ = ("_callbacks", "_value")

    def __init__(self) -> None:
        self._value: Any = _UNRESOLVED
        self._callbacks: list[Callable[[T], None]] | None = None
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

    @property
    def is_resolved(self) -> bool:
        return self._value is not _UNRESOLVED

    @property
    def value(self) -> T:
        assert self._value is not _UNRESOLVED, "the value of a Later was read before it came"
        return cast(T, self._value)

    def resolve(self, value: T) -> None:
        """Fills the slot and calls everyone who waits, in order; a second call is a bug of ours.
        What a callback raises is raised when all have been called."""
        assert self._value is _UNRESOLVED, "a Later was resolved twice"
        self._value = value
        if _open is not None:
            _open.pop(self, None)
        callbacks, self._callbacks = self._callbacks, None
        failures: list[Exception] = []
        for callback in callbacks or ():
            try:
                callback(value)
            except Exception as failure:  # noqa: BLE001 - those behind it wait for the value, too
                failures.append(failure)
        if failures:
            raise _as_one(failures)

    def map(self, change: Callable[[T], R]) -> Later[R]:
        """A slot for what becomes of the value."""
        later: Later[R] = Later()
        self.then(lambda value: later.resolve(change(value)))
        return later

    def then(self, callback: Callable[[T], None]) -> None:
        """Calls back with the value: at once when it is here, else when it comes."""
        if self._value is not _UNRESOLVED:
            callback(self._value)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)


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
    """The first line outside of this module, as `kafkalite.handlers.fetch:57`."""
    while frame is not None and frame.f_globals.get("__name__") == _HERE:
        frame = frame.f_back
    if frame is None:
        return "nowhere"
    return f"{frame.f_globals.get('__name__', '')}:{frame.f_lineno}"
