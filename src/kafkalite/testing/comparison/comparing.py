"""Finds what differs between two views of the same answer, and learns new ids from them.

An id that is new on both sides, in the same place, is the same thing from then on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kafkalite.testing.comparison.names import Names, canonical_id
from kafkalite.testing.comparison.views import Unknown


@dataclass(frozen=True, slots=True)
class Difference:
    """One place of one answer. `path` is without positions, so that it names the kind of place."""

    api: str
    version: int
    path: str
    place: str
    ours: Any
    theirs: Any
    asked: Any = field(compare=False, repr=False)  # the request

    @property
    def signature(self) -> tuple[str, str]:
        return self.api, self.path

    def __str__(self) -> str:
        where = f"{self.api} v{self.version} {self.place}"
        return f"{where}\n    kafkalite     {self.ours!r}\n    Apache Kafka  {self.theirs!r}"


class Comparison:
    """What the two sides of one conversation have in common so far."""

    def __init__(self, ours: Names, theirs: Names) -> None:
        self._ours, self._theirs = ours, theirs
        self._counts: Counter[str] = Counter()

    def differences(
        self, api: str, version: int, ours: Any, theirs: Any, asked: Any
    ) -> list[Difference]:
        """Of two views; neither is changed and nothing is learned."""
        if not (isinstance(ours, dict) and isinstance(theirs, dict)):
            if ours == theirs:
                return []
            path = f"answer: {_outcome(ours)} | {_outcome(theirs)}"
            return [Difference(api, version, path, path, ours, theirs, asked)]
        return [
            Difference(api, version, _pattern(place), place, left, right, asked)
            for place, left, right in self._walk("", ours, theirs)
            if not (isinstance(left, Unknown) and isinstance(right, Unknown))
        ]

    def learn(self, ours: Any, theirs: Any, recorded: Any = None) -> None:
        """Gives canonical names to the ids that are new on both sides: those that the answer
        `recorded` has in the same place, if there is one."""
        for place, left, right in self._walk("", ours, theirs):
            if isinstance(left, Unknown) and isinstance(right, Unknown):
                self._bind(left, right, _at(recorded, place))

    def _bind(self, left: Unknown, right: Unknown, recorded: Any) -> None:
        kind = left.kind
        if self._ours.knows(kind, left.actual) or self._theirs.knows(kind, right.actual):
            return
        if isinstance(recorded, Unknown) and not self._ours.has_actual(kind, recorded.actual):
            canonical = recorded.actual
        elif left.actual == right.actual and isinstance(left.actual, str):
            canonical = self._ours.text_in(left.actual)  # the client chose it
        else:
            self._counts[kind] += 1
            canonical = canonical_id(kind, self._counts[kind])
        self._ours.bind(kind, left.actual, canonical)
        self._theirs.bind(kind, right.actual, canonical)

    def _walk(self, place: str, ours: Any, theirs: Any) -> Iterator[tuple[str, Any, Any]]:
        if isinstance(ours, dict) and isinstance(theirs, dict):
            for name in dict.fromkeys((*ours, *theirs)):
                inner = f"{place}.{name}" if place else name
                yield from self._walk(inner, ours.get(name), theirs.get(name))
        elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            for position, (left, right) in enumerate(zip(ours, theirs, strict=True)):
                yield from self._walk(f"{place}[{position}]", left, right)
        elif isinstance(ours, list) and isinstance(theirs, list) and _match_if_filled(ours, theirs):
            yield place, _hollow(ours), _hollow(theirs)
            yield from self._walk(place, _filled(ours), _filled(theirs))
        elif isinstance(ours, Unknown) or isinstance(theirs, Unknown) or ours != theirs:
            yield place, ours, theirs


def resolve(view: Any, names: Names) -> Any:
    """The view with ids that have a name by now under that name."""
    if isinstance(view, dict):
        return {name: resolve(value, names) for name, value in view.items()}
    if isinstance(view, list):
        return [resolve(each, names) for each in view]
    if isinstance(view, Unknown):
        return names.canonical(view.kind, view.actual)
    return view


def _is_hollow(value: Any) -> bool:
    """Whether an element names something and nothing in it: a topic without partitions."""
    return isinstance(value, dict) and [] in value.values()


def _hollow(values: list[Any]) -> list[Any]:
    return [each for each in values if _is_hollow(each)]


def _filled(values: list[Any]) -> list[Any]:
    return [each for each in values if not _is_hollow(each)]


def _match_if_filled(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether two lists are of the same length but for hollow elements."""
    return len(_filled(ours)) == len(_filled(theirs))


def _at(view: Any, place: str) -> Any:
    """What is in this place of a view, or None."""
    for part in re.findall(r"\w+|\[\d+\]", place):
        if part[0] != "[" and isinstance(view, dict):
            view = view.get(part)
        elif part[0] == "[" and isinstance(view, list) and int(part[1:-1]) < len(view):
            view = view[int(part[1:-1])]
        else:
            return None
    return view


def _outcome(answer: Any) -> str:
    return "an answer" if isinstance(answer, dict) else str(answer)


def _pattern(place: str) -> str:
    """The place without positions: `topics[0].name` is `topics[].name`."""
    parts = place.split("[")
    return parts[0] + "".join("[" + part[part.index("]") :] for part in parts[1:])
