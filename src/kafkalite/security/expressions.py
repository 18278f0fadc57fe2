"""Expressions that administrators write, matched against names that peers bring, in bounded time.

Owns the matching: what Python's expressions find, found without going the same way twice, so that
an expression that explodes there takes time as long as the name here; what refers back to a group
may still explode, and is given up. Of one character, and of what lies between two, Python's own
expressions decide. Invariant: questions take no more steps than there are, or TooLong is raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

Steps = Iterator[int]  # that are left for all that is asked about one name
MOST_INSTRUCTIONS = 5_000

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII}
_BETWEEN = re.compile(r"[\^$]|\\[AZbB]")
_BACK = re.compile(r"\\([1-9][0-9]?)|\(\?P=(\w+)\)")
_SET = re.compile(r"\[\^?(?:\\.|[^\\\]])*\]", re.DOTALL)
_ONE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|0[0-7]{0,2}|.)|.", re.DOTALL)
_GROUP = re.compile(r"\((?:\?(P<\w+>|:|=|!|>|<=|<!|[a-zA-Z]*(?:-[a-zA-Z]+)?[:)]))?")
_COUNT = re.compile(r"(\*|\+|\?|\{(?=[\d,])(\d*)(,?)(\d*)\})([?+]?)")


class TooLong(ValueError):
    """The name has too many ways to match."""


class _Op(Enum):
    CHARACTER = auto()
    BETWEEN = auto()
    SPLIT = auto()  # into two ways, the first of which is the better one
    JUMP = auto()
    SAVE = auto()
    BACK = auto()
    AHEAD = auto()
    ATOMIC = auto()


_Code = list[tuple[_Op, Any, Any]]
_Saved = tuple[int, ...]


@dataclass(slots=True, frozen=True)
class Found:
    """Where the whole expression and its groups matched."""

    expression: Expression
    text: str
    places: _Saved

    @property
    def start(self) -> int:
        return self.places[0]

    @property
    def end(self) -> int:
        return self.places[1]

    def __getitem__(self, group: int | str) -> str | None:
        number = self.expression.names[group] if isinstance(group, str) else group
        start, end = self.places[2 * number : 2 * number + 2]
        return None if min(start, end) < 0 else self.text[start:end]


class Expression:
    """One of Python's; raises re.error for what is none, or cannot be matched here."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        compiled = re.compile(pattern, flags)
        self.groups, self.names = compiled.groups, dict(compiled.groupindex)
        reader = _Reader(pattern, compiled.flags, self.names)
        self._code = reader.alternatives()
        self._is_memorable = not reader.refers_back

    def fullmatch(self, text: str, steps: Steps) -> Found | None:
        return self._search(text, 0, steps, is_whole=True)

    def replaced(self, text: str, replacement: Callable[[Found], str], steps: Steps) -> str:
        """With all that matches replaced, as Java does it: behind a match of nothing it goes on
        with the next character."""
        parts, last = [], 0
        for found in self._all(text, steps):
            parts += [text[last : found.start], replacement(found)]
            last = found.end
        return "".join((*parts, text[last:]))

    def _all(self, text: str, steps: Steps) -> Iterator[Found]:
        start = 0
        while start <= len(text):
            found = self._search(text, start, steps)
            if found is None:
                return
            yield found
            start = found.end + (found.end == found.start)

    def _search(
        self, text: str, first: int, steps: Steps, *, is_whole: bool = False
    ) -> Found | None:
        """From the first place on where it matches, or at that place all of the text."""
        run = _Run(text, steps, set() if self._is_memorable else None)
        nothing = (-1,) * (2 * self.groups + 2)
        for start in range(first, first + 1 if is_whole else len(text) + 1):
            found = run.match(self._code, start, nothing, is_whole=is_whole)
            if found is not None:
                end, saved = found
                return Found(self, text, (start, end, *saved[2:]))
        return None


@dataclass(slots=True)
class _Run:
    """One search: which ways were tried in vain, by code and place."""

    text: str
    steps: Steps
    tried: set[tuple[int, int, int]] | None

    def match(
        self, code: _Code, start: int, saved: _Saved, *, is_whole: bool = False
    ) -> tuple[int, _Saved] | None:
        """Where it ends by the best way, and what it saved."""
        ways = [(0, start, saved)]
        while ways:
            found = self._go(code, ways, *ways.pop(), is_whole)
            if found is not None:
                return found
        return None

    def _go(
        self,
        code: _Code,
        ways: list[tuple[int, int, _Saved]],
        at: int,
        place: int,
        saved: _Saved,
        is_whole: bool,
    ) -> tuple[int, _Saved] | None:
        """One way to its end; what else there is to try goes to the others."""
        while at < len(code):
            if next(self.steps, None) is None:
                raise TooLong("it has too many ways to match")
            op, one, other = code[at]
            if op is _Op.CHARACTER:
                if place == len(self.text) or one(self.text, place) is None:
                    return None
                at, place = at + 1, place + 1
            elif op is _Op.SPLIT:
                if self._was_tried(code, at, place):
                    return None
                ways.append((at + other, place, saved))
                at += one
            elif op is _Op.JUMP:
                at += one
            elif op is _Op.SAVE:
                saved = (*saved[:one], place, *saved[one + 1 :])
                at += 1
            else:
                gone = self._special(op, one, other, place, saved)
                if gone is None:
                    return None
                place, saved = gone
                at += 1
        return None if is_whole and place < len(self.text) else (place, saved)

    def _was_tried(self, code: _Code, at: int, place: int) -> bool:
        if self.tried is None:
            return False
        way = id(code), at, place
        was_tried = way in self.tried
        self.tried.add(way)
        return was_tried

    def _special(
        self, op: _Op, one: Any, other: Any, place: int, saved: _Saved
    ) -> tuple[int, _Saved] | None:
        """Where it goes on; None where it does not."""
        if op is _Op.BETWEEN:
            return None if one(self.text, place) is None else (place, saved)
        if op is _Op.BACK:
            start, end = saved[2 * one : 2 * one + 2]
            if min(start, end) < 0 or not self.text.startswith(self.text[start:end], place):
                return None
            return place + end - start, saved
        # A part that is matched by itself: what failed in it before may do so for other reasons.
        found = _Run(self.text, self.steps, None if self.tried is None else set()).match(
            one, place, saved
        )
        if op is _Op.ATOMIC:
            return found
        if other:  # is not to be there
            return (place, saved) if found is None else None
        return None if found is None else (place, found[1])


class _Reader:
    """Makes code of an expression that Python has found right."""

    def __init__(self, text: str, flags: int, names: dict[str, int]) -> None:
        if flags & re.VERBOSE:
            raise re.error("comments within an expression are not served")
        self._text, self._flags, self._names = text, flags, names
        self._place = self._groups = 0
        self.refers_back = False

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._place)
        if match is not None:
            self._place = match.end()
        return match

    def _accept(self, sign: str) -> bool:
        is_there = self._text.startswith(sign, self._place)
        self._place += len(sign) * is_there
        return is_there

    def alternatives(self) -> _Code:
        code = self._sequence()
        if not self._accept("|"):
            return code
        others = self.alternatives()
        return [
            (_Op.SPLIT, 1, len(code) + 2), *code, (_Op.JUMP, len(others) + 1, None), *others
        ]

    def _sequence(self) -> _Code:
        code: _Code = []
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            code += self._counted(self._atom())
            if len(code) > MOST_INSTRUCTIONS:
                raise re.error("it is too large")
        return code

    def _atom(self) -> _Code:
        if (group := self._take(_GROUP)) is not None:
            return self._group(group[1])
        if (between := self._take(_BETWEEN)) is not None:
            return [(_Op.BETWEEN, self._python(between[0]), None)]
        if (back := self._take(_BACK)) is not None:
            return self._back(int(back[1]))
        one = self._take(_SET) or self._take(_ONE)
        assert one is not None
        return [(_Op.CHARACTER, self._python(one[0]), None)]

    def _python(self, part: str) -> Any:
        return re.compile(part, self._flags).match

    def _back(self, group: int) -> _Code:
        if self._flags & re.IGNORECASE:
            raise re.error("a group that is referred to whatever its case is not served")
        self.refers_back = True
        return [(_Op.BACK, group, None)]

    def _group(self, kind: str | None) -> _Code:
        if self._text.startswith("(?P=", self._place - 1):
            back = _BACK.match(self._text, self._place - 1)
            assert back is not None
            self._place = back.end()
            return self._back(self._names[back[2]])
        if self._text.startswith("?", self._place):
            raise re.error("a group of this kind is not served")
        flags = self._flags
        if kind is None or kind.startswith("P<"):
            self._groups += 1
            number = self._groups
            inner = self._inner()
            return [(_Op.SAVE, 2 * number, None), *inner, (_Op.SAVE, 2 * number + 1, None)]
        if kind.endswith(")"):
            self._flags = _changed(flags, kind[:-1])
            return []
        if kind.endswith(":"):
            self._flags = _changed(flags, kind[:-1])
            inner = self._inner()
            self._flags = flags
            return inner
        if kind in ("<=", "<!"):
            return self._behind(f"(?{kind}")
        inner = self._inner()
        return [(_Op.ATOMIC if kind == ">" else _Op.AHEAD, inner, kind == "!")]

    def _inner(self) -> _Code:
        flags = self._flags
        code = self.alternatives()
        self._flags = flags
        assert self._accept(")")
        return code

    def _behind(self, opening: str) -> _Code:
        """Of a fixed length, so that Python's own cannot take long."""
        start, groups = self._place, self._groups
        self._inner()
        if self._groups > groups:
            raise re.error("a group in what lies behind is not served")
        part = self._text[start : self._place]
        return [(_Op.BETWEEN, self._python(opening + part), None)]

    def _counted(self, code: _Code) -> _Code:
        count = self._take(_COUNT)
        while count is not None:
            code = _repeated(code, *_bounds(count), is_lazy=count[5] == "?")
            if count[5] == "+":
                code = [(_Op.ATOMIC, code, False)]
            count = self._take(_COUNT)
        return code


def _changed(flags: int, letters: str) -> int:
    on, _, off = letters.partition("-")
    for letter in on:
        flags |= _FLAGS.get(letter, 0)
    for letter in off:
        flags &= ~_FLAGS.get(letter, 0)
    return flags


def _bounds(count: re.Match[str]) -> tuple[int, int | None]:
    if count[1] in "*+?":
        return int(count[1] == "+"), 1 if count[1] == "?" else None
    least = int(count[2] or 0)
    if not count[3]:
        return least, least
    return least, int(count[4]) if count[4] else None


def _repeated(code: _Code, least: int, most: int | None, *, is_lazy: bool) -> _Code:
    copies = least if most is None else most
    if (copies + 1) * (len(code) + 2) > MOST_INSTRUCTIONS:
        raise re.error("it is too large")
    if most is None:
        rest = [_split(1, len(code) + 2, is_lazy), *code, (_Op.JUMP, -len(code) - 1, None)]
    else:
        rest = []
        for _ in range(most - least):
            rest = [_split(1, len(code) + len(rest) + 1, is_lazy), *code, *rest]
    return code * least + rest


def _split(on: int, over: int, is_lazy: bool) -> tuple[_Op, Any, Any]:
    return (_Op.SPLIT, over, on) if is_lazy else (_Op.SPLIT, on, over)
