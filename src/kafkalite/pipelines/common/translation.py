"""Which offset of a mirrored topic became which, and by that where a group goes on.

Owns the records of it and the arithmetic. A batch of a partition is one `Sync`; where offsets have
gaps (markers, aborted records, compaction) it holds the runs between them, as they were when the
batch was copied, so that nothing which the source forgets later changes the answer. Pure.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafkalite.pipelines.common.offsets import Offsets, TopicPartition

Run = tuple[int, int]  # first offset, and how many without a gap


@dataclass(frozen=True, slots=True)
class Sync:
    """One batch of one partition: source offsets `start` to `end` became `to_start` to `to_end`."""

    start: int
    end: int
    to_start: int
    to_end: int
    runs: tuple[Run, ...] = ()

    @property
    def is_dense(self) -> bool:
        return self.end - self.start == self.to_end - self.to_start

    def until(self, offset: int) -> "Sync":
        """Of one without gaps what lies before an offset."""
        end = min(self.end, offset)
        return replace(self, end=end, to_end=self.place(end))

    def place(self, offset: int) -> int:
        """Where the record at this offset, or the next one behind it, came to lie."""
        if self.is_dense:
            return self.to_start + offset - self.start
        place = self.to_start
        for first, length in self.runs:
            if offset < first + length:
                return place + max(0, offset - first)
            place += length
        return place


def follow(syncs: list[Sync], sync: Sync) -> None:
    """Puts one behind the others; a batch that comes again takes its own place.

    What has no gap becomes one with what it follows, so that a mirror that runs for long does not
    remember each batch.
    """
    while syncs and syncs[-1].start >= sync.start:
        syncs.pop()
    if syncs and syncs[-1].is_dense:
        last = syncs.pop().until(sync.start)
        if sync.is_dense and (last.end, last.to_end) == (sync.start, sync.to_start):
            sync = replace(last, end=sync.end, to_end=sync.to_end)
        else:
            syncs.append(last)
    syncs.append(sync)


def translate(offset: int, syncs: Sequence[Sync]) -> int | None:
    """Where a source offset came to lie; None for one before or past what was mirrored."""
    if not syncs:
        return None
    if offset == syncs[-1].end:
        return syncs[-1].to_end
    at = bisect_right(syncs, offset, key=lambda sync: sync.start) - 1
    return syncs[at].place(offset) if at >= 0 and offset < syncs[at].end else None


@dataclass(frozen=True, slots=True)
class Moves:
    """What becomes of one group: offsets to commit, and partitions left as they are, and why."""

    ahead: Offsets
    left: dict[TopicPartition, str]

    def after(self, earlier: "Moves") -> "Moves":
        """With what was moved before in the same run: it is there now."""
        left = {
            copy: why
            for copy, why in self.left.items()
            if why != BEHIND or copy not in earlier.ahead
        }
        return Moves({**earlier.ahead, **self.ahead}, left)


BEHIND, BEFORE, PAST = (
    "there already, or further on",
    "before what was mirrored",
    "not mirrored that far yet",
)


def moves(here: Offsets, there: Offsets, places: Offsets, starts: Offsets) -> Moves:
    """The step: a group's offsets at the source and at the copies, and where the former came to
    lie (by the copy's name); a group is never set back.

    `here` and `starts`, where the mirror began, are by the copy's name as well.
    """
    ahead: Offsets = {}
    left: dict[TopicPartition, str] = {}
    for copy, offset in sorted(here.items()):
        place = places.get(copy)
        why = None
        if place is None:
            why = BEFORE if offset < starts.get(copy, 0) else PAST
        elif there.get(copy, -1) >= place:
            why = BEHIND
        if why is not None:
            left[copy] = why
        elif place is not None:
            ahead[copy] = place
    return Moves(ahead, left)


def still_to_write(landed: Sequence[int], ours: Sequence[tuple[int, int]]) -> int | None:
    """The first offset of a partition's batch that has not landed; None when all has.

    `landed` is what came of the batch, in its order; `ours` is what the source has of it now, with
    offsets: compaction may have taken from it, never from what landed. What is left of the part
    that landed is the longest beginning of `ours` that is found in `landed`, in order.
    """
    remaining = iter(landed)
    for offset, content in ours:
        if not any(content == each for each in remaining):
            return offset
    return None
