"""A tool's help as joptsimple prints it: two columns, each line filled up with blanks.

Owns where Java breaks a line: behind blanks, behind hyphens that no digit follows, behind
punctuation or =" that a word follows, and before an opening parenthesis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kafkalite.tools.options import Option

_WIDTH = 80
_GAP = 2
_INDENT = "  "
_BREAK = re.compile(
    r"(?<=\s)(?=\S)|(?<=[A-Za-z])(?=\()|(?<=-)(?=[A-Za-z])|(?<=[.,:;!?)\]}])(?=[A-Za-z(]|-(?!\d))"
    r"|(?<=:)(?=\d)|(?<=\d)(?=>)"
    r'|(?<==")(?=\w)'
)


def text(options: Sequence[Option]) -> str:
    head = "Option (* = required)" if any(each.is_required for each in options) else "Option"
    rows = [(head, "Description"), ("-" * len(head), "-----------")]
    wanted = [(_shown(each), _description(each)) for each in sorted(options, key=_name)]
    first = min((_WIDTH - _GAP) // 2, max(len(left) for left, _ in [*rows, *wanted]))
    second = min(_WIDTH - first - _GAP, max(len(right) for _, right in [*rows, *wanted]))
    for left, right in wanted:
        rows += _side_by_side(list(_lines(left, first)), list(_lines(right, second)))
    first = max(len(left) for left, _ in rows)
    second = max(len(right) for _, right in rows)
    return "".join(f"{left:{first + _GAP}}{right:{second}}\n" for left, right in rows)


def _name(option: Option) -> str:
    return option.name


def _shown(option: Option) -> str:
    names = sorted([option.name, *option.aliases], key=len)
    shown = ", ".join(f"-{name}" if len(name) == 1 else f"--{name}" for name in names)
    shown = f"* {shown}" if option.is_required else shown
    if option.argument is None:
        return shown
    about = f"{option.kind}: {option.argument}" if option.argument else option.kind
    return f"{shown} [{about}]" if option.may_lack_argument else f"{shown} <{about}>"


def _description(option: Option) -> str:
    default = "" if option.default is None else f" (default: {option.default})"
    return option.description + default


def _side_by_side(left: list[str], right: list[str]) -> Iterator[tuple[str, str]]:
    for number in range(max(len(left), len(right))):
        yield "".join(left[number : number + 1]), "".join(right[number : number + 1])


def _lines(text: str, width: int) -> Iterator[str]:
    for line in text.strip().split("\n"):
        kept = ""
        for piece in pieces(line):
            if len(kept) + len(piece) > width:
                yield kept.rstrip()
                kept = _INDENT + piece
            else:
                kept += piece
        if kept:
            yield kept


def pieces(line: str) -> list[str]:
    """The parts of a line between which it may be broken."""
    return _BREAK.split(line)
