"""A value that comes later: the one kind of promise in the broker.

Owns the hand-over of a single value to the callbacks that wait for it, in the order they came. It
never carries an exception (errors travel as values), never switches threads and never runs a
coroutine. Invariant: it is resolved at most once, and every callback is called exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

_UNRESOLVED: Any = object()


class Later(Generic[T]):
    """A slot for one value; whoever owns the answer resolves it, whoever needs it calls `then`."""

    __slots__ = ("_callbacks", "_value")

    def __init__(self) -> None:
        self._value: Any = _UNRESOLVED
        self._callbacks: list[Callable[[T], None]] | None = None

    @classmethod
    def of(cls, value: T) -> Later[T]:
        """A slot that is already filled."""
        later: Later[T] = cls()
        later._value = value
        return later

    @property
    def is_resolved(self) -> bool:
        return self._value is not _UNRESOLVED

    @property
    def value(self) -> T:
        assert self._value is not _UNRESOLVED, "the value of a Later was read before it came"
        return cast(T, self._value)

    def resolve(self, value: T) -> None:
        """Fills the slot and calls everyone who waits, in order; a second call is a bug of ours."""
        assert self._value is _UNRESOLVED, "a Later was resolved twice"
        self._value = value
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback(value)

    def then(self, callback: Callable[[T], None]) -> None:
        """Calls back with the value: at once when it is here, else when it comes."""
        if self._value is not _UNRESOLVED:
            callback(self._value)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)
