"""A tool that takes a command before its options, as data in argparse4j's own words: arguments,
groups of them, and what is done with each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Action(Enum):
    """What is done with an argument: its value is stored, added to those before it, or true when
    it is there; the last two print something and end the tool."""

    STORE = auto()
    APPEND = auto()
    STORE_TRUE = auto()
    HELP = auto()
    VERSION = auto()

    @property
    def has_value(self) -> bool:
        return self in (Action.STORE, Action.APPEND)

    @property
    def ends(self) -> bool:
        return self in (Action.HELP, Action.VERSION)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Arguments with a title of their own in the help, or of which one excludes the others."""

    title: str = ""
    description: str = ""
    is_exclusive: bool = False
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Argument:
    """One option.

    bits: of a number.
    metavar: what its value is called, if not as the option."""

    name: str
    description: str
    short: str = ""
    type: type[Any] = str
    action: Action = Action.STORE
    group: Group | None = None
    is_required: bool = False
    bits: int = 32
    metavar: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        flags = (f"--{self.name}", *([f"-{self.short}"] if self.short else []))
        return flags[::-1] if self.action.ends else flags

    @property
    def field(self) -> str:
        return self.metavar or self.name.replace("-", "_").upper()

    @property
    def used(self) -> str:
        return f"{self.flags[0]} {self.field}" if self.action.has_value else self.flags[0]

    @property
    def exclusive(self) -> Group | None:
        return self.group if self.group is not None and self.group.is_exclusive else None


_HELP = Argument("help", "show this help message and exit", "h", action=Action.HELP)


@dataclass(frozen=True, slots=True)
class Command:
    """description: beside its name; about: in its own help."""

    name: str
    description: str
    arguments: tuple[Argument, ...] = ()
    about: str = ""

    @property
    def options(self) -> tuple[Argument, ...]:
        return (_HELP, *self.arguments)


@dataclass(frozen=True, slots=True)
class Program:
    """A tool, by its name and what it is about.

    shared: options before the command.
    help_code: what the tool ends with after its help.
    is_terse: whether complaints come without the usage.
    title, metavar: of the commands; without them they are positional arguments by their names."""

    name: str
    about: str
    commands: Sequence[Command]
    shared: tuple[Argument, ...] = ()
    help_code: int = 0
    is_terse: bool = False
    title: str = ""
    metavar: str = ""

    @property
    def before(self) -> Command:
        """What stands before the command."""
        return Command("", "", self.shared)
