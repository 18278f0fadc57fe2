"""What argparse4j prints of a tool's commands and options: its help, and its complaints.

Owns its layout: usage in parts that are not broken, text in 75 columns, each line but the last
stretched to its width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kafkalite.tools.arguments import Argument, Command, Group, Program
from kafkalite.tools.help import pieces
from kafkalite.tools.options import VERSION

_COMMIT = "26b251a451ce941d"  # of Apache Kafka 4.3.1
VERSION_AND_COMMIT = f"{VERSION} (Commit:{_COMMIT})"
_WIDTH = 75
_HELP_COLUMN = 25
_INDENT = "  "


def of(program: Program) -> str:
    """The help of a tool."""
    names = _names(program)
    rows = "".join(_row(each.name, each.description, 4) for each in program.commands)
    commands = f"\n{program.title or 'positional arguments'}:\n{_INDENT}{names}\n{rows}"
    options = _sections(program.before)
    text = f"{_usage(program)}\n{_text(program.about)}"
    return text + (options + commands if program.title else commands + options)


def of_command(program: Program, command: Command) -> str:
    about = f"\n{_text(command.about)}" if command.about else ""
    return _command_usage(program, command) + about + _sections(command)


def complaint(program: Program, command: Command | None, wrong: str) -> str:
    usage = _usage(program) if command is None else _command_usage(program, command)
    return usage + "\n".join(_wrapped(f"{program.name}: error: {wrong}\n", _WIDTH))


def _names(program: Program) -> str:
    return program.metavar or f"{{{','.join(each.name for each in program.commands)}}}"


def _usage(program: Program) -> str:
    return _broken(program, [*_usage_parts(program.before.options), _names(program), "..."])


def _command_usage(program: Program, command: Command) -> str:
    needed = [
        each for each in program.shared
        if each.is_required or (each.exclusive and each.exclusive.is_required)
    ]  # fmt: skip
    before = [*_usage_parts(needed), command.name]
    return _broken(program, [*before, *_usage_parts(command.options)])


def _broken(program: Program, parts: Sequence[str]) -> str:
    line = f"usage: {program.name}"
    indent = " " * len(line)
    lines = []
    for part in parts:
        if len(line) + 1 + len(part) > _WIDTH:
            lines.append(line)
            line = indent
        line += f" {part}"
    return "".join(f"{each}\n" for each in (*lines, line))


def _usage_parts(arguments: Sequence[Argument]) -> Iterator[str]:
    groups: dict[Group, list[Argument]] = {}
    for each in arguments:
        if each.exclusive:
            groups.setdefault(each.exclusive, []).append(each)
        else:
            yield each.used if each.is_required else f"[{each.used}]"
    for group, members in groups.items():
        opening, closing = "()" if group.is_required else "[]"
        for number, each in enumerate(members):
            end = closing if number == len(members) - 1 else " |"
            yield f"{'' if number else opening}{each.used}{end}"


def _sections(command: Command) -> str:
    """The options by the titles of their groups."""
    sections: dict[Group, list[Argument]] = {_OTHERS: []}
    for each in command.options:
        group = each.group if each.group and each.group.title else _OTHERS
        sections.setdefault(group, []).append(each)
    text = ""
    for group, arguments in sections.items():
        about = _text(group.description, _INDENT) + "\n" if group.description else ""
        text += f"\n{group.title}:\n{about}{''.join(map(_argument_row, arguments))}"
    return text


_OTHERS = Group("optional arguments")


def _argument_row(argument: Argument) -> str:
    field = f" {argument.field}" if argument.action.has_value else ""
    left = ", ".join(f"{flag}{field}" for flag in argument.flags)
    return _row(left, argument.description)


def _text(text: str, indent: str = "") -> str:
    return "".join(f"{indent}{line}\n" for line in _wrapped(text, _WIDTH - len(indent)))


def _row(left: str, right: str, indent: int = len(_INDENT)) -> str:
    """One line of a help: what it is about, and in the column beside it what it does."""
    head = " " * indent + left
    width = _WIDTH - _HELP_COLUMN
    parts = right.splitlines(keepends=True)  # their ends count
    lines = [line.rstrip("\n") for part in parts for line in _wrapped(part, width)]
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
    found, *rest = re.findall(" *[^ ]+", line.rstrip())
    if not rest:
        return str(found)
    each, more = divmod(width - len(line.rstrip()), len(rest))
    first = (len(rest) - more + 1) // 2
    for number, word in enumerate(rest):
        found += " " * (each + (first <= number < first + more)) + word
    return str(found)
