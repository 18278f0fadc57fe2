"""Beginnings of names, and whether a name begins with one of them.

Owns them in two lists, both in order: those that begin with no other one, and all others.
Invariant: of the former at most one is a beginning of a name, and then it is the last that is not
behind the name; so a question is one search, however many they are and however long.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort


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

    def add(self, text: str) -> None:
        """One that is not among them."""
        if self.begin(text):
            insort(self._others, text)
            return
        longer = _that_begin_with(self.shortest, text)
        if self.shortest[longer]:
            self._others += self.shortest[longer]
            self._others.sort()
        self.shortest[longer] = [text]

    def remove(self, text: str) -> None:
        """One that is among them."""
        if not _has(self.shortest, text):
            del self._others[bisect_left(self._others, text)]
            return
        longer = _that_begin_with(self._others, text)
        shortest: list[str] = []
        others: list[str] = []
        for each in self._others[longer]:
            is_shortest = not shortest or not each.startswith(shortest[-1])
            (shortest if is_shortest else others).append(each)
        self._others[longer] = others
        place = bisect_left(self.shortest, text)
        self.shortest[place : place + 1] = shortest


def _has(texts: list[str], text: str) -> bool:
    place = bisect_left(texts, text)
    return place < len(texts) and texts[place] == text


def _that_begin_with(texts: list[str], text: str) -> slice:
    """Where they are: next to each other."""
    first = bisect_left(texts, text)
    end = bisect_left(texts, True, first, key=lambda each: not each.startswith(text))
    return slice(first, end)
