"""How long ago what a group reads next was written: its lag in seconds.

Owns the ends of partitions as they were seen from time to time, and reads between the lines: when
the end of a partition was where the group is now. Invariant: at most `SEEN` ends of a partition are
kept, and none of a partition that has gone.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

from kafkalite.client.survey import Place, Survey

SEEN = 120


@dataclass(slots=True)
class Ends:
    """Where partitions ended, and when."""

    _seen: dict[Place, deque[tuple[int, int]]] = field(default_factory=dict)

    def note(self, found: Survey) -> None:
        places = {
            (topic.name, index): partition.ends
            for topic in found.topics.values()
            for index, partition in topic.partitions.items()
        }
        for place in self._seen.keys() - places.keys():
            del self._seen[place]
        for place, end in places.items():
            if end is not None:
                self._note(place, found.at_ms, end)

    def _note(self, place: Place, at_ms: int, end: int) -> None:
        seen = self._seen.setdefault(place, deque(maxlen=SEEN))
        if seen and (end < seen[-1][1] or at_ms < seen[-1][0]):
            seen.clear()  # another topic of that name, or a clock that was set back
        if len(seen) >= 2 and seen[-1][1] == seen[-2][1] == end:
            seen[-1] = (at_ms, end)  # it has rested: where that began and where it ended says all
        else:
            seen.append((at_ms, end))

    def lag_seconds(self, place: Place, committed: int, now_ms: int) -> float | None:
        """None while nobody can know: too little was seen so far."""
        seen = self._seen.get(place)
        if not seen:
            return None
        if committed >= seen[-1][1]:
            return 0.0
        for (before_ms, before), (after_ms, after) in pairwise(seen):
            if before <= committed < after:
                share = (committed - before) / (after - before)
                return (now_ms - before_ms - share * (after_ms - before_ms)) / 1000
        return _further_back(seen, committed, now_ms)


def _further_back(seen: deque[tuple[int, int]], committed: int, now_ms: int) -> float | None:
    """From before anything was seen, if records went on coming as they have since."""
    (first_ms, first), (last_ms, last) = seen[0], seen[-1]
    if last == first:
        return None
    per_ms = (last - first) / max(last_ms - first_ms, 1)
    return (now_ms - first_ms + (first - committed) / per_ms) / 1000
