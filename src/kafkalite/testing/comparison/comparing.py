"""Finds what differs between two views of the same answer, and learns new ids from them.

Everything is compared: each field, each element, and the order of each list. What of that may
differ is the table's business (differences.py), with two exceptions that are the ids' nature: an id
that is new on both sides, in the same place, is the same thing from then on; and elements of lists
are held against those of the same name or id, so that a missing one is told as missing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kafkalite.testing.comparison.names import Names, canonical_id
from kafkalite.testing.comparison.views import Unknown

ORDER = " order"
# Lists in which a topic may stand in several places, with some of its partitions in each: where
# some are refused, or the request names it twice. They are compared as if it stood in one.
GATHERED = {
    "Fetch": {"responses": "partitions"},
    "OffsetCommit": {"topics": "partitions"},
    "OffsetDelete": {"topics": "partitions"},
    "TxnOffsetCommit": {"topics": "partitions"},
}


class Absent(Enum):
    """What stands where one side's list has no such element."""

    ABSENT = "nothing"

    def __repr__(self) -> str:
        return "(not there)"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Difference:
    """One place of one answer. `path` is without positions, so that it names the kind of place:
    `topics[].name` a field, `topics[]` an element that one side lacks, `topics[] order` the order
    of those that both have."""

    api: str
    version: int
    path: str
    place: str
    ours: Any
    theirs: Any
    asked: Any = field(compare=False, repr=False)  # the request
    # The structs around the place on both sides, the innermost last.
    around: tuple[tuple[Any, Any], ...] = field(default=(), compare=False, repr=False)

    @property
    def signature(self) -> tuple[str, str]:
        return self.api, self.path

    def beside(self, name: str, outwards: int = 1) -> tuple[Any, Any]:
        """What both have in another field of the struct this many steps outwards."""
        ours, theirs = self.around[-outwards]
        return ours.get(name), theirs.get(name)

    def __str__(self) -> str:
        where = f"{self.api} v{self.version} {self.place}"
        return f"{where}\n    kafkalite     {self.ours!r}\n    Apache Kafka  {self.theirs!r}"


Found = tuple[str, Any, Any, tuple[tuple[Any, Any], ...]]


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
        pairs, both = _Pairs(), (ours, theirs)
        return [
            Difference(api, version, _pattern(place), place, left, right, asked, around)
            for place, left, right, around in _walk("", *(_gathered(api, one) for one in both))
            if not pairs.are_one(left, right)
        ]

    def learn(self, ours: Any, theirs: Any, recorded: Any = None) -> None:
        """Gives canonical names to the ids that are new on both sides: those that the answer
        `recorded` has in the same place, if there is one."""
        for place, left, right, _ in _walk("", in_order(ours), in_order(theirs)):
            if isinstance(left, Unknown) and isinstance(right, Unknown):
                self._bind(left, right, _at(in_order(recorded), place))

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


class _Pairs:
    """The new ids of one answer: each stands for one of the other side, wherever it is."""

    def __init__(self) -> None:
        self._found: dict[tuple[bool, str, Any], Any] = {}

    def are_one(self, left: Any, right: Any) -> bool:
        if not (isinstance(left, Unknown) and isinstance(right, Unknown)):
            return False
        there = self._found.setdefault((True, left.kind, left.actual), right)
        back = self._found.setdefault((False, right.kind, right.actual), left)
        return bool(there == right and back == left)


def _walk(
    place: str, ours: Any, theirs: Any, around: tuple[tuple[Any, Any], ...] = ()
) -> Iterator[Found]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        around = (*around, (ours, theirs))
        for name in dict.fromkeys((*ours, *theirs)):
            inner = f"{place}.{name}" if place else name
            left, right = ours.get(name, ABSENT), theirs.get(name, ABSENT)
            yield from _walk(inner, left, right, around)
    elif isinstance(ours, list) and isinstance(theirs, list):
        yield from _walk_lists(place, ours, theirs, around)
    elif isinstance(ours, Unknown) or isinstance(theirs, Unknown) or not _is_same(ours, theirs):
        yield place, ours, theirs, around


def _walk_lists(
    place: str, ours: list[Any], theirs: list[Any], around: tuple[tuple[Any, Any], ...]
) -> Iterator[Found]:
    """Elements of the same key are held against each other, in the order in which they come."""
    left_keys, right_keys = [key_of(each) for each in ours], [key_of(each) for each in theirs]
    partners = _partners(left_keys, right_keys, ours, theirs)
    for number, partner in enumerate(partners):
        right = ABSENT if partner is None else theirs[partner]
        yield from _walk(f"{place}[{number}]", ours[number], right, around)
    for number in sorted({*range(len(theirs))} - {*partners}):
        yield f"{place}[{number}]", ABSENT, theirs[number], around
    both = [each for each in partners if each is not None]
    if both != sorted(both):
        yield f"{place}[]{ORDER}", left_keys, right_keys, around


def _partners(
    left_keys: list[Any], right_keys: list[Any], ours: list[Any], theirs: list[Any]
) -> list[int | None]:
    """For each of ours the number of theirs with the same key, and among several the same one."""
    waiting: dict[Any, list[int]] = defaultdict(list)
    for number, key in enumerate(right_keys):
        waiting[key].append(number)
    found: dict[int, int] = {}
    for number, key in enumerate(left_keys):
        rest = waiting[key]
        if len(rest) > 1:
            twin = next((one for one in rest if _is_alike(ours[number], theirs[one])), None)
            if twin is not None:
                rest.remove(twin)
                found[number] = twin
    for number, key in enumerate(left_keys):
        if number not in found and waiting[key]:
            found[number] = waiting[key].pop(0)
    return [found.get(number) for number in range(len(ours))]


def _is_alike(ours: Any, theirs: Any) -> bool:
    return repr(in_order(ours)) == repr(in_order(theirs))


def _is_same(ours: Any, theirs: Any) -> bool:
    return type(ours) is type(theirs) and bool(ours == theirs)


# By what an element is told from its siblings: the first of these that it has. Without one, its
# place among them does.
_KEYS = (
    ("resource_type", "resource_name"), ("entity_type",), ("entity",), ("mechanism",), ("name",),
    ("topic",), ("topic_name",), ("topic_id",), ("partition_index",), ("partition",),
    ("partition_id",), ("index",), ("group_id",), ("transactional_id",), ("member_id",), ("key",),
    ("api_key",), ("producer_id",), ("user",), ("feature",), ("node_id",), ("broker_id",),
    ("voter_id", "replica_id"), ("replica_id",), ("log_dir",), ("base_offset",), ("offset",),
)  # fmt: skip


def key_of(element: Any) -> Any:
    if isinstance(element, dict):
        for names in _KEYS:
            if all(element.get(name) not in (None, "") for name in names):
                return tuple(_hashable(element[name]) for name in names)
        return ()
    return _hashable(element)


def _hashable(value: Any) -> Any:
    if isinstance(value, Unknown):
        return f"a new {value.kind}"
    return repr(in_order(value)) if isinstance(value, dict | list) else value


def in_order(view: Any) -> Any:
    """The view with every list in the order of its keys, whatever was answered."""
    if isinstance(view, dict):
        return {name: in_order(value) for name, value in view.items()}
    if isinstance(view, list):
        return sorted(map(in_order, view), key=lambda each: f"{key_of(each)} {each}")
    return view


def _gathered(api: str, view: Any) -> Any:
    """The view with each topic of these lists in one place."""
    if not isinstance(view, dict) or api not in GATHERED:
        return view
    view = dict(view)
    for name, parts in GATHERED[api].items():
        if isinstance(view.get(name), list):
            view[name] = _together(view[name], parts)
    return view


def _together(elements: list[Any], parts: str) -> list[Any]:
    found: list[Any] = []
    places: dict[str, Any] = {}
    for each in elements:
        if not (isinstance(each, dict) and isinstance(each[parts], list)):
            found.append(each)
            continue
        # Of ids that are new each is another.
        key = repr([
            (value.kind, value.actual) if isinstance(value, Unknown) else (name, value)
            for name, value in each.items()
            if name != parts
        ])
        if key not in places:
            places[key] = {**each, parts: []}
            found.append(places[key])
        places[key][parts] += each[parts]
    return found


def resolve(view: Any, names: Names) -> Any:
    """The view with ids that have a name by now under that name."""
    if isinstance(view, dict):
        return {name: resolve(value, names) for name, value in view.items()}
    if isinstance(view, list):
        return [resolve(each, names) for each in view]
    if isinstance(view, Unknown):
        return names.canonical(view.kind, view.actual)
    return view


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
    return re.sub(r"\[\d+\]", "[]", place)
