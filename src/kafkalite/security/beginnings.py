"""Beginnings of names, and whether a name begins with one of them.

Owns them in two lists, both in order: those that begin with no other one, and all others.
Invariant: of the former at most one is a beginning of a name, and then it is the last that is not
behind the name; so a question is one search, however many they are and however long. A change may
bring very many from one list to the other: that is worked out in steps, and then put in place at
once; nothing else may be changed between the two.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial

from kafkalite.env.slicing import LOOKS_PER_STEP, Steps

Change = Callable[[], None]
_NOWHERE = slice(0, 0)


class Beginnings:
    """Some texts, each of them once."""

    __slots__ = ("_others", "shortest")

    def __init__(self) -> None:
        self.shortest: list[str] = []  # those that begin with no other one; to be read
        self._others: list[str] = []

    def begin(self, name: str) -> bool:
        """Whether one of them is a beginning of the name."""
        place = bisect_right(self.shortest, name)
        return place > 0 and name.startswith(self.shortest[place - 1])

    def __contains__(self, text: str) -> bool:
        return _has(self.shortest, text) or _has(self._others, text)

    def adding(self, text: str) -> Steps[Change]:
        """One that is not among them: what puts it there."""
        if self.begin(text):
            place = bisect_left(self._others, text)
            return partial(self._put, _NOWHERE, [], slice(place, place), [text])
        longer = _that_begin_with(self.shortest, text)
        behind = _that_begin_with(self._others, text)
        others = yield from _merged(self._others[behind], self.shortest[longer])
        return partial(self._put, longer, [text], behind, others)

    def removing(self, text: str) -> Steps[Change]:
        """One that is among them: what takes it away."""
        if not _has(self.shortest, text):
            place = bisect_left(self._others, text)
            return partial(self._put, _NOWHERE, [], slice(place, place + 1), [])
        behind = _that_begin_with(self._others, text)
        shortest: list[str] = []
        others: list[str] = []
        for number, each in enumerate(self._others[behind], 1):
            is_shortest = not shortest or not each.startswith(shortest[-1])
            (shortest if is_shortest else others).append(each)
            if number % LOOKS_PER_STEP == 0:
                yield
        place = bisect_left(self.shortest, text)
        return partial(self._put, slice(place, place + 1), shortest, behind, others)

    def _put(
        self, where: slice, shortest: list[str], where_others: slice, others: list[str]
    ) -> None:
        self.shortest[where] = shortest
        self._others[where_others] = others


def _merged(one: list[str], other: list[str]) -> Steps[list[str]]:
    """All of both, in order."""
    if not one or not other:
        return one or other
    merged: list[str] = []
    for each in heapq.merge(one, other):
        merged.append(each)
        if len(merged) % LOOKS_PER_STEP == 0:
            yield
    return merged


def _has(texts: list[str], text: str) -> bool:
    place = bisect_left(texts, text)
    return place < len(texts) and texts[place] == text


def _that_begin_with(texts: list[str], text: str) -> slice:
    """Where they are: next to each other."""
    first = bisect_left(texts, text)
    end = bisect_left(texts, True, first, key=lambda each: not each.startswith(text))
    return slice(first, end)
