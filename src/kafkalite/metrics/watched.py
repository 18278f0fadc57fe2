"""Commits beside where partitions ended when they were made: what windows are filled from.

Owns the last look at the cluster. Not for several threads at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kafkalite.client.survey import Place, Survey
from kafkalite.metrics.windows import Windows

OLD_MS = 15_000  # a commit from before a look by more than that had another lag


@dataclass(slots=True)
class Watched:
    windows: Windows = field(default_factory=Windows)
    last: Survey | None = None

    def note(self, found: Survey) -> None:
        """What is there now; what is gone is forgotten."""
        self.last = found
        self.windows.keep(
            (topic.name, index) for topic in found.topics.values() for index in topic.partitions
        )

    def committed(self, group: str, place: Place, offset: int | None, at_ms: int) -> None:
        """What a reader of commits has seen; None: it is gone."""
        if offset is None:
            self.windows.forget(group, place)
        else:
            self.windows.commit(group, place, offset, at_ms, self._end_at(place, at_ms))

    def _end_at(self, place: Place, at_ms: int) -> int | None:
        """Where a partition ended when somebody committed; not known of long ago."""
        if self.last is None or at_ms < self.last.at_ms - OLD_MS:
            return None
        return self.last.end(place)
