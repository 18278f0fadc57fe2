"""Dataclasses whose methods are made when the first of a kind is, or is asked for its fields.

Owns `dataclass`, in the place of the library's and with its arguments. To make the methods of a
class takes a fourth of a millisecond, there are hundreds of classes, and a start meets few of them.
Invariant: nobody sees a difference but for the time that an import takes.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from dataclasses import field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "fields", "replace"]

# What the library makes, in this order: who finds an __init__ needs nothing more.
_MADE = (
    "__dataclass_params__", "__dataclass_fields__", "__match_args__", "__repr__", "__eq__",
    "__hash__", "__lt__", "__le__", "__gt__", "__ge__", "__init__",
)  # fmt: skip
# Which of that is asked of a class that nobody has made one of.
_ASKED = ("__dataclass_fields__", "__match_args__", "__init__")
_NO_FIELDS = ("ClassVar", "typing.ClassVar")
_lock = threading.RLock()
# Those that methods were made for; a class that is dropped is a circle for the collector to find.
_completed: list[type[Any]] = []


class _Late:
    """Stands in a class for something that is not made yet."""

    __slots__ = ("_complete", "_name")

    def __init__(self, name: str, complete: Callable[[], type[Any]]) -> None:
        self._name = name
        self._complete = complete

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        made = self._complete().__dict__[self._name]
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


def _late(plain: Any, options: dict[str, Any]) -> type[Any]:
    """The class with its slots, which will be given what the library makes for the plain one."""
    contents = dict(plain.__dict__)
    names = [
        name for name, kind in plain.__annotations__.items() if not str(kind).startswith(_NO_FIELDS)
    ]
    for name in (*names, "__dict__", "__weakref__"):
        contents.pop(name, None)
    inherited = {name for base in plain.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    contents["__slots__"] = tuple(name for name in names if name not in inherited)
    waiting = [plain]

    def complete() -> type[Any]:
        with _lock:
            if waiting:
                _completed.append(waiting.pop())
                _give(made, dataclasses.dataclass(**options)(_completed[-1]))
        return made

    made: type[Any] = type(plain)(plain.__name__, plain.__bases__, contents)
    made.__qualname__ = plain.__qualname__
    plain.__doc__ = plain.__name__  # else the library makes one up, which takes as long as the rest
    for name in _ASKED:
        setattr(made, name, _Late(name, complete))
    if options.get("frozen"):
        for name, act in _OF_FROZEN.items():
            setattr(made, name, act)
    return made


def _give(made: type[Any], plain: type[Any]) -> None:
    for name in _MADE:
        if name in plain.__dict__ and made.__dict__.get(name, _Late) is not plain.__dict__[name]:
            setattr(made, name, plain.__dict__[name])


def _state(self: Any) -> list[Any]:
    """For a copy, since nothing can be set in it."""
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _refuse(self: object, name: str, *_: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


_OF_FROZEN: dict[str, Callable[..., Any]] = {
    "__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state,
    "__setstate__": _set_state,
}  # fmt: skip

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, slots: bool = False, **options: Any) -> Callable[[type[Any]], type[Any]]:
        make = partial(_late, options=options)
        return make if slots else dataclasses.dataclass(**options)
