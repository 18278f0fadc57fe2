"""Holds what differs against the table of what may (allowed.py).

docs/generated/differences.md shows that. A row names the fields of the APIs that it is about, one
by one, and says under which condition their values may differ. A difference without a row is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafkalite.testing.comparison.comparing import Difference


def _always(difference: Difference) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Allowed:
    """`fields` are the API and the path of each place, as Difference.signature tells them. What
    `parts_states` leaves the two in states that cannot be compared any more."""

    name: str
    fields: tuple[str, ...]
    reason: str
    holds: Callable[[Difference], bool] = _always
    parts_states: bool = False

    def covers(self, difference: Difference) -> bool:
        if " ".join(difference.signature) not in self.fields:
            return False
        try:
            return self.holds(difference)
        except (TypeError, KeyError, AttributeError, StopIteration):
            return False  # values that a condition makes no sense for do not fulfil it


def of_each(api: str, *paths: str) -> tuple[str, ...]:
    return tuple(f"{api} {path}" for path in paths)


def explain(difference: Difference) -> Allowed | None:
    """The row that allows this difference."""
    from kafkalite.testing.comparison.allowed import ALLOWED

    return next((row for row in ALLOWED if row.covers(difference)), None)


def unexplained(differences: Iterable[Difference]) -> list[Difference]:
    return [each for each in differences if explain(each) is None]
