"""What was done to which requests, so that it can be shown, kept and done again.

Owns how a step names its request: by its position among those that are like it, never by time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

_SEQUENCE = re.compile(r"-\d+$")  # what a library counts its clients of a process by


@dataclass(slots=True, frozen=True, order=True)
class Place:
    """Requests that are like each other."""

    api: str
    of: str  # partitions (of a fetch with the offset that it gives), a group, a transactional id
    by: str  # the client id, without the number of a sequence behind it


@dataclass(slots=True, frozen=True, kw_only=True)
class Step:
    """One thing that a broker does: to the `number`th request at which that kind is legal, of this
    API, about this, by this client. What is None is any."""

    kind: str
    number: int = 1
    api: str | None = None
    of: str | None = None
    by: str | None = None

    def __str__(self) -> str:
        where = " ".join(
            part
            for part in (self.api or "request", self.of and f"of {self.of}",
                         self.by and f"by {self.by}")
            if part
        )  # fmt: skip
        return f"{self.kind} at no. {self.number} of {where}"

    def is_at(self, kind: str, place: Place) -> bool:
        return (
            self.kind == kind
            and self.api in (None, place.api)
            and self.of in (None, place.of)
            and (self.by is None or client_name(self.by) == place.by)
        )

    def values(self) -> dict[str, Any]:
        return asdict(self)


class Schedule(tuple[Step, ...]):
    """Steps, in the order in which they were done. Its repr is an expression that makes it."""

    __slots__ = ()

    def __new__(cls, steps: Iterable[Step | Mapping[str, Any]] = ()) -> Schedule:
        return super().__new__(cls, map(_step, steps))

    def __repr__(self) -> str:
        return f"Schedule([{', '.join(map(_expression, self))}])"

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "(nothing was done)"

    def without(self, at: int, count: int) -> Schedule:
        return Schedule((*self[:at], *self[at + count :]))

    def each_shorter(self) -> Iterator[Schedule]:
        """Those that lack a part, the largest parts first."""
        size = len(self)
        while size:
            for at in range(0, len(self), size):
                yield self.without(at, size)
            size //= 2

    def each_earlier(self) -> Iterator[Schedule]:
        """Those of which one step is met earlier."""
        for at, step in enumerate(self):
            if step.number > 1:
                earlier = replace(step, number=step.number - 1)
                yield Schedule((*self[:at], earlier, *self[at + 1 :]))


def _step(given: Step | Mapping[str, Any]) -> Step:
    if isinstance(given, Step):
        return given
    known = {field.name for field in fields(Step)}
    if not isinstance(given, Mapping) or not given.keys() <= known or "kind" not in given:
        raise ValueError(f"{given!r} is no step: it has a kind, and maybe number, api, of and by")
    return Step(**given)


def _expression(step: Step) -> str:
    values = {name: value for name, value in step.values().items() if value is not None}
    return f"Step({', '.join(f'{name}={value!r}' for name, value in values.items())})"


def client_name(client_id: str | None) -> str:
    return _SEQUENCE.sub("", client_id or "")
