"""Counts what was compared, so that nobody says "alike" of what nobody looked at.

Each request is noted once: what was asked is what was compared and what was left out, API by API,
and `check` sees to that. A ledger in which no answer of both was compared proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ASKED, SENT, ANSWERED, COMPARED, DIFFERED = (
    "asked", "sent to both", "answered by both", "compared", "differed",
)  # fmt: skip
_COLUMNS = (ASKED, SENT, ANSWERED, COMPARED, DIFFERED)
LEFT_OUT = "left out"


@dataclass(slots=True)
class Ledger:
    """For each API how many requests came how far, and why others were left out."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)  # by API, then by reason

    def compared(self, api: str, *, answered: bool, differed: bool) -> None:
        """A request whose outcomes on both sides were held against each other; where not both
        `answered`, the outcome is that."""
        row = self._row(api)
        row.update((ASKED, SENT, COMPARED))
        row[ANSWERED] += answered
        row[DIFFERED] += differed

    def leave_out(self, api: str, reason: str, *, sent: bool = False) -> None:
        row = self._row(api)
        row[ASKED] += 1
        row[SENT] += sent
        self.left_out.setdefault(api, Counter())[reason] += 1

    def update(self, other: Ledger) -> None:
        for api, row in other.counts.items():
            self._row(api).update(row)
        for api, reasons in other.left_out.items():
            self.left_out.setdefault(api, Counter()).update(reasons)

    def total(self, column: str) -> int:
        return sum(row[column] for row in self.counts.values())

    @property
    def is_nothing(self) -> bool:
        """Whether no answer of both was compared: then nothing was shown, whatever differed."""
        return not any(row[ANSWERED] and row[COMPARED] for row in self.counts.values())

    @property
    def total_left_out(self) -> int:
        return sum(reasons.total() for reasons in self.left_out.values())

    def check(self) -> None:
        """It adds up, in each row."""
        for api, row in self.counts.items():
            left_out = self.left_out.get(api, Counter()).total()
            assert row[ASKED] == row[COMPARED] + left_out, f"{api}: {row} and {left_out} left out"
            assert row[ANSWERED] <= row[COMPARED] <= row[SENT] <= row[ASKED], f"{api}: {row}"

    def lines(self) -> Iterator[str]:
        """A table: a row for each API and one for all; below it why what was left out."""
        self.check()
        yield f"{'':30}" + "".join(f"{name:>18}" for name in (*_COLUMNS, LEFT_OUT))
        rows: dict[str, Any] = dict(sorted(self.counts.items()))
        for api, row in rows.items():
            yield _line(api, row, self.left_out.get(api, Counter()).total())
        totals = {name: self.total(name) for name in _COLUMNS}
        yield _line("all", totals, self.total_left_out)
        for api, reasons in sorted(self.left_out.items()):
            for reason, count in reasons.most_common():
                yield f"{count:6} left out: {api}: {reason}"

    def to_plain(self) -> dict[str, Any]:
        return {"counts": self.counts, "left_out": self.left_out}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Ledger:
        def counters(name: str) -> dict[str, Counter[str]]:
            return {api: Counter(row) for api, row in plain[name].items()}

        return cls(counters("counts"), counters("left_out"))

    def _row(self, api: str) -> Counter[str]:
        return self.counts.setdefault(api, Counter())


def _line(name: str, row: Any, left_out: int) -> str:
    counts = [*(row[each] for each in _COLUMNS), left_out]
    return f"{name:30}" + "".join(f"{count:18}" for count in counts)
