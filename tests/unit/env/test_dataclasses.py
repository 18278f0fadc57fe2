"""Dataclasses whose methods are made late, beside those of the library."""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from kafkalite.env import dataclasses as late

T = TypeVar("T")
OPTIONS: list[dict[str, Any]] = [
    {}, {"frozen": True}, {"eq": False}, {"order": True}, {"kw_only": True},
    {"frozen": True, "order": True, "repr": False},
]  # fmt: skip


class Asked(Generic[T]):
    __slots__ = ()
    name: str


def made(dataclass: Callable[..., Any], options: dict[str, Any]) -> tuple[type[Any], type[Any]]:
    @dataclass(slots=True, **options)
    class Base(Asked[int]):
        kind: ClassVar[str] = "base"
        name: str
        count: int = 1

    @dataclass(slots=True, **options)
    class Longer(Base):
        """With a list of its own."""

        items: list[int] = late.field(default_factory=list)
        hidden: int = late.field(default=7, repr=False, compare=False)
        twice: int = late.field(init=False, default=0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.count)

    return Base, Longer


def shown(cls: type[Any]) -> list[Any]:
    """All that can be told of its instances."""
    one, other = cls(name="a", count=3), cls(name="b")
    told = [repr(one).partition(" object at")[0], one.twice]
    told += [one == cls(name="a", count=3), one == other, one != other]
    told += [dataclasses.astuple(copy.deepcopy(one)), dataclasses.astuple(copy.copy(one))]
    told += [dataclasses.astuple(one), dataclasses.replace(one, name="c").name, cls.kind]
    told += [field.name for field in dataclasses.fields(one)]
    told += [cls.__match_args__, cls.__slots__, cls.__qualname__, hasattr(one, "__dict__")]
    for act in (hash, lambda each: each < other, lambda each: setattr(each, "count", 4)):
        try:
            told.append(act(one) if act is not hash else bool(act(one)))
        except (TypeError, dataclasses.FrozenInstanceError) as error:
            told.append((type(error), str(error)))
    told.append(one.count)
    return told


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_nobody_sees_a_difference(options: dict[str, Any]) -> None:
    assert shown(made(late.dataclass, options)[1]) == shown(made(dataclasses.dataclass, options)[1])


def test_nothing_is_made_before_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    make = dataclasses.dataclass

    def counted(**options: Any) -> Any:
        def made(cls: type[Any]) -> type[Any]:
            asked.append(cls.__name__)
            return make(**options)(cls)

        return made

    monkeypatch.setattr(dataclasses, "dataclass", counted)
    base, longer = made(late.dataclass, {})
    assert asked == []
    base(name="a")
    assert asked == ["Base"]
    base(name="b")
    longer("c")
    assert asked == ["Base", "Longer"]


@pytest.mark.parametrize("name", ["__dataclass_fields__", "__match_args__"])
def test_what_is_asked_of_the_class_is_there(name: str) -> None:
    ours, theirs = made(late.dataclass, {})[1], made(dataclasses.dataclass, {})[1]
    assert list(getattr(ours, name)) == list(getattr(theirs, name))
    assert [each.name for each in late.fields(ours)] == [
        each.name for each in late.fields(theirs)
    ]


def test_a_dataclass_of_the_library_may_stand_on_one_of_ours() -> None:
    @dataclasses.dataclass(slots=True)
    class Longest(made(late.dataclass, {})[1]):  # type: ignore[misc]
        more: int = 5

    assert dataclasses.astuple(Longest("a")) == ("a", 1, [], 7, 2, 5)


def test_a_class_with_methods_of_its_own_keeps_them() -> None:
    @late.dataclass(slots=True, eq=False)
    class Own:
        value: int

        def __repr__(self) -> str:
            return f"<{self.value}>"

        def __init__(self, value: int) -> None:
            self.value = 2 * value

    assert repr(Own(3)) == "<6>"


def test_threads_that_come_together_find_it_whole() -> None:
    for _ in range(50):
        _, longer = made(late.dataclass, {"frozen": True})
        found: list[Any] = []
        together = threading.Barrier(4)

        def make(cls: type[Any] = longer, wait: threading.Barrier = together) -> None:
            wait.wait()
            found.append(cls("a", items=[1]))  # noqa: B023 - it ends in this round

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [longer("a", items=[1])] * 4
