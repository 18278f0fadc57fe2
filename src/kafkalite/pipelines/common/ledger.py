"""The account of a run: read up to where, written so many, left out so many and why.

Owns the sums and the verdict. `read` is what Spark's source counted while it read; `written` is
what the sink has to show for itself: the log of a table, the footers of its files, the ends of a
topic. They come from different hands, and a run is proven when they agree. Pure.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kafkalite.pipelines.common.offsets import Offsets, Range, count

NO_RECORD = "offsets without a record (markers, aborted, compacted)"


@dataclass(slots=True)
class Account:
    """Of one batch: what its sink shows, and what was left out by intent."""

    written: int = 0
    # What the sink had of this batch from an attempt before, which was not written again.
    there_already: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    # Known only where the rows were counted on their way; else the source's own count is taken.
    read: int | None = None
    differences: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    """The account of all batches of one run of `command`."""

    command: str
    source: str
    sink: str
    isolation: str = "read_committed"
    read: int = 0
    written: int = 0
    there_already: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    # Ranges that were gone before they were read, where that was to be written down only.
    lost: list[str] = field(default_factory=list)
    batches: int = 0
    offsets: int = 0
    reached: Offsets = field(default_factory=dict)
    committed_to: str = ""

    def add(self, account: Account, ranges: tuple[Range, ...], read: int) -> None:
        """One batch that its sink has."""
        self.batches += 1
        self.offsets += count(ranges)
        self.read += read if account.read is None else account.read
        self.written += account.written
        self.there_already += account.there_already
        self.left_out.update(account.left_out)
        self.differences += account.differences

    @property
    def without_record(self) -> int:
        return max(0, self.offsets - self.read)

    @property
    def faults(self) -> list[str]:
        """What keeps this run from being proven."""
        accounted = self.written + self.there_already + sum(self.left_out.values())
        if accounted == self.read:
            return self.differences
        return [
            *self.differences,
            f"{self.read:,} records were read, but {accounted:,} are accounted for: "
            f"{self.written:,} written, {self.there_already:,} there already, "
            f"{sum(self.left_out.values()):,} left out",
        ]

    def as_json(self) -> dict[str, Any]:
        """One object for machines."""
        nested: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(self.reached.items()):
            nested.setdefault(topic, {})[str(partition)] = offset
        return {
            "command": self.command,
            "source": self.source,
            "isolation": self.isolation,
            "read": self.read,
            "written": self.written,
            "there_already": self.there_already,
            "left_out": dict(sorted(self.left_out.items())),
            "without_record": self.without_record,
            "lost": self.lost,
            "batches": self.batches,
            "sink": self.sink,
            "committed_to": self.committed_to,
            "reached": nested,
            "faults": self.faults,
            "proven": not self.faults,
        }

    def rows(self) -> list[tuple[str, str]]:
        """For people: what, and how much."""
        found = [
            ("read", f"{self.read:,} records of {self.source} ({self.isolation})"),
            ("written", f"{self.written:,} to {self.sink}"),
        ]
        if self.there_already:
            found.append(("there already", f"{self.there_already:,}"))
        found += [("left out", f"{n:,} {why}") for why, n in sorted(self.left_out.items()) if n]
        if self.without_record:
            found.append(("no record", f"{self.without_record:,} {NO_RECORD}"))
        found.append(("committed", self.committed_to))
        return found
