"""What both generators share: lines of Python, the names in them, and what is of fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from construct.core import Bytes, Construct, Flag, FormatField, Renamed

from kafkalite.protocol.runtime import STEP_ELEMENTS, Recipe, Written

_FLAG = type(Flag)


class Source:
    """A function being written, with a recipe for each of its global names."""

    def __init__(self, signature: str) -> None:
        self.lines = [signature]
        self.depth = 1
        self.recipes: dict[str, Recipe] = {}
        self._count = 0
        self.is_in_steps = False

    def in_steps(self) -> None:
        """Makes the function a generator, which yields after so many elements of lists."""
        self.is_in_steps = True
        self.add(f"left = {STEP_ELEMENTS}")
        self.add("if not left: yield")

    def element(self) -> None:
        """At the beginning of each element of a list."""
        if self.is_in_steps:
            self.add("left -= 1")
            with self.block("if not left:"):
                self.add(f"left = {STEP_ELEMENTS}")
                self.add("yield")

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def new(self, stem: str) -> str:
        """A name that no other part of the function has."""
        self._count += 1
        return f"{stem}{self._count}"

    def struct(self, layout: str, method: str) -> str:
        """The global name of a method of the struct.Struct of this layout."""
        return self._global(f"{method}_{layout.replace('?', 'T')}", (">" + layout, method))

    def few(self, layout: str, method: str) -> str:
        """The global name of such methods for each small count of this layout."""
        return self._global(f"few_{method}_{layout.replace('?', 'T')}", ("few " + layout, method))

    def part(self, kind: str, struct: str) -> str:
        """The global name of a struct's class, or of a new object of it."""
        return self._global(f"{kind.upper()}_{struct}", (kind, struct))

    def _global(self, name: str, recipe: Recipe) -> str:
        self.recipes[name] = recipe
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    def written(self) -> Written:
        return "\n".join(self.lines) + "\n", self.recipes


def struct_name(cls: type) -> str:
    """How a recipe names the class of a message's struct: without the message."""
    return cls.__qualname__.partition(".")[2]


def unnamed(subcon: Construct) -> Construct:
    """The construct behind the name that it has in its Struct."""
    return subcon.subcon if isinstance(subcon, Renamed) else subcon


def fixed_format(subcon: Construct) -> str | None:
    """The struct format of a construct of fixed size, None of any other."""
    if isinstance(subcon, FormatField):
        return str(subcon.fmtstr[-1])
    if isinstance(subcon, Bytes):
        return f"{subcon.length}s"
    return "?" if isinstance(subcon, _FLAG) else None
