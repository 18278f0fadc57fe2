"""Tools that take a command before their options, with help and complaints as argparse4j has them.

Owns its layout: usage in parts that are not broken, text in 75 columns, each line but the last
stretched to its width.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalite.tools.help import pieces
from kafkalite.tools.java_numbers import whole

_WIDTH = 75
_HELP_COLUMN = 25


@dataclass(frozen=True, slots=True)
class Argument:
    """One option; those of the same `one_of` exclude each other, and one of them is needed.

    is_free: whether it need not be one of them.
    is_list: whether it may be given several times.
    section: of the help, if it is not with the others."""

    name: str
    description: str
    short: str = ""
    type: type[Any] = str
    is_flag: bool = False
    is_required: bool = False
    one_of: str = ""
    is_free: bool = False
    is_list: bool = False
    section: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        return (f"--{self.name}", *([f"-{self.short}"] if self.short else []))

    @property
    def field(self) -> str:
        return self.name.replace("-", "_").upper()

    @property
    def used(self) -> str:
        return self.flags[0] if self.is_flag else f"{self.flags[0]} {self.field}"


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    description: str
    arguments: tuple[Argument, ...]


class WrongWords(Exception):
    """What is wrong with the words, behind the usage."""


def tell_terse(wrong: str) -> None:
    print(f"Command line error: {wrong}. Type --help for help.", end="", file=sys.stderr)


class Parser:
    """shared: options before the command; is_terse: whether complaints come without the usage."""

    def __init__(
        self, program: str, about: str, commands: Sequence[Command],
        shared: tuple[Argument, ...] = (), *, is_terse: bool = False,
    ) -> None:
        self._is_terse = is_terse
        self._program, self._about = program, about
        self._commands = {each.name: each for each in commands}
        self._shared = Command("", "", shared)

    def read(self, words: Sequence[str]) -> tuple[str, dict[str, Any]] | None:
        """The command, and the values of its options; None when that was said instead of done."""
        command = None
        first, rest = _split(words)
        try:
            if _HELP & set(first):
                print(self._help(), end="")
                return None
            found = _values(self._shared, first)
            command = self._command(rest)
            if _HELP & set(rest):
                print(self._command_help(command), end="")
                return None
            found |= _values(command, rest[1:])
            _check_needed(command, found)
            command = None
            _check_needed(self._shared, found)
            return rest[0], found
        except WrongWords as wrong:
            if self._is_terse:
                tell_terse(str(wrong))
                return None
            usage = self._usage() if command is None else self._command_usage(command)
            said = _wrapped(f"{self._program}: error: {wrong}\n", _WIDTH)  # its end counts
            print(usage + "\n".join(said), end="", file=sys.stderr)
            return None

    def _command(self, words: Sequence[str]) -> Command:
        if not words:
            raise WrongWords("too few arguments")
        if words[0] not in self._commands:
            names = ", ".join(f"'{name}'" for name in self._commands)
            raise WrongWords(f"invalid choice: '{words[0]}' (choose from {names})")
        return self._commands[words[0]]

    def _usage(self) -> str:
        names = f"{{{','.join(self._commands)}}}"
        return self._broken(["[-h]", *_usage_parts(self._shared), names, "..."])

    def _help(self) -> str:
        names = ",".join(self._commands)
        rows = [_row(each.name, each.description, 4) for each in self._commands.values()]
        return (
            f"{self._usage()}\n{self._about}\n\npositional arguments:\n  {{{names}}}\n"
            f"{''.join(rows)}\noptional arguments:\n{_row('-h, --help', _HELP_TEXT)}"
            f"{_rows(self._shared.arguments)}"
        )

    def _command_usage(self, command: Command) -> str:
        needed = tuple(each for each in self._shared.arguments if each.one_of and not each.is_free)
        before = _usage_parts(Command("", "", needed))
        return self._broken([*before, command.name, "[-h]", *_usage_parts(command)])

    def _broken(self, parts: Sequence[str]) -> str:
        indent = len(f"usage: {self._program} ")
        line = f"usage: {self._program}"
        lines = []
        for part in parts:
            if len(line) + 1 + len(part) > _WIDTH:
                lines.append(line)
                line = " " * (indent - 1)
            line += f" {part}"
        return "".join(f"{each}\n" for each in (*lines, line))

    def _command_help(self, command: Command) -> str:
        sections: dict[str, list[Argument]] = {"optional arguments": []}
        for each in command.arguments:
            sections.setdefault(each.section or "optional arguments", []).append(each)
        text = self._command_usage(command)
        for title, arguments in sections.items():
            first = _row("-h, --help", _HELP_TEXT) if title == "optional arguments" else ""
            text += f"\n{title}:\n{first}{_rows(arguments)}"
        return text


_HELP = {"-h", "--help"}
_HELP_TEXT = "show this help message and exit"


def _usage_parts(command: Command) -> Iterator[str]:
    for each in command.arguments:
        if not each.one_of:
            yield each.used if each.is_required else f"[{each.used}]"
    groups: dict[str, list[Argument]] = {}
    for each in command.arguments:
        if each.one_of:
            groups.setdefault(each.one_of, []).append(each)
    for group in groups.values():
        for number, each in enumerate(group):
            signs = "[]" if each.is_free else "()"
            opening = signs[0] if number == 0 else ""
            closing = signs[1] if number == len(group) - 1 else " |"
            yield f"{opening}{each.used}{closing}"


def _rows(arguments: Sequence[Argument]) -> str:
    rows = []
    for each in arguments:
        field = "" if each.is_flag else f" {each.field}"
        rows.append(_row(", ".join(f"{flag}{field}" for flag in each.flags), each.description))
    return "".join(rows)


def _row(left: str, right: str, indent: int = 2) -> str:
    """One line of a help: what it is about, and in the column beside it what it does."""
    head = " " * indent + left
    lines = _wrapped(right, _WIDTH - _HELP_COLUMN)
    text = [" " * _HELP_COLUMN + line for line in lines]
    if len(head) < _HELP_COLUMN - 1:
        text[0] = f"{head:{_HELP_COLUMN}}{lines[0]}"
        return "".join(f"{line}\n" for line in text)
    return "".join(f"{line}\n" for line in (head, *text))


def _wrapped(text: str, width: int) -> list[str]:
    lines, line = [], ""
    for piece in pieces(text):
        if line and len(line) + len(piece) > width:
            lines.append(_stretched(line, width))
            line = ""
        line += piece
    return [*lines, line]


def _stretched(line: str, width: int) -> str:
    """The line with its blanks made more, those in its middle first."""
    words = line.rstrip().split(" ")
    missing, gaps = width - len(line.rstrip()), len(words) - 1
    if gaps == 0:
        return words[0]
    each, more = divmod(missing, gaps)
    first = (gaps - more + 1) // 2
    found = words[0]
    for number, word in enumerate(words[1:]):
        found += " " * (1 + each + (first <= number < first + more)) + word
    return found


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Before the command, and from it on: it is no option, and no value of one."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        has_value = "=" not in words[place] and words[place] not in _HELP
        place += 1 + has_value
    return words[:place], words[place:]


def _values(command: Command, words: Sequence[str]) -> dict[str, Any]:
    by_flag = {flag: each for each in command.arguments for flag in each.flags}
    found: dict[str, Any] = {each.name: False for each in command.arguments if each.is_flag}
    given: list[Argument] = []
    rest = list(reversed(words))
    while rest:
        argument, value = _argument(by_flag, rest.pop())
        _check_alone(argument, given)
        given.append(argument)
        if argument.is_flag:
            found[argument.name] = True
            continue
        if value is None and (not rest or rest[-1] in by_flag):
            raise WrongWords(f"argument {'/'.join(argument.flags)}: expected one argument")
        value = _value(argument, rest.pop() if value is None else value)
        found[argument.name] = [*found.get(argument.name, []), value] if argument.is_list else value
    return found


def _argument(by_flag: dict[str, Argument], word: str) -> tuple[Argument, str | None]:
    """What a word names, by its beginning if need be, and the value that is in the word itself."""
    flag, has_value, value = word.partition("=")
    if flag in by_flag:
        return by_flag[flag], value if has_value else None
    if word[:2] in by_flag and not word.startswith("--"):
        return by_flag[word[:2]], word[2:]
    like = sorted(each for each in by_flag if flag.startswith("--") and each.startswith(flag))
    if len(like) > 1:
        raise WrongWords(f"ambiguous option: {flag} could match {', '.join(like)}")
    if not like:
        raise WrongWords(f"unrecognized arguments: '{word}'")
    return by_flag[like[0]], value if has_value else None


def _check_alone(argument: Argument, given: Sequence[Argument]) -> None:
    for other in given:
        if argument.one_of and other.one_of == argument.one_of and other is not argument:
            raise WrongWords(
                f"argument {'/'.join(argument.flags)}: not allowed with argument "
                f"{'/'.join(other.flags)}"
            )


def _check_needed(command: Command, given: Mapping[str, Any]) -> None:
    for each in sorted(command.arguments, key=lambda each: each.name):
        if each.is_required and each.name not in given:
            raise WrongWords(f"argument {'/'.join(each.flags)} is required")
    for group in dict.fromkeys(
        each.one_of for each in command.arguments if each.one_of and not each.is_free
    ):
        members = [each for each in command.arguments if each.one_of == group]
        if not any(each.name in given for each in members):
            names = " ".join("/".join(each.flags) for each in members)
            raise WrongWords(f"one of the arguments {names} is required")


def _value(argument: Argument, text: str) -> Any:
    try:
        return whole(text) if argument.type is int else argument.type(text)
    except ValueError:
        raise WrongWords(
            f"argument {'/'.join(argument.flags)}: could not convert '{text}' to Integer (For "
            f'input string: "{text}")'
        ) from None
