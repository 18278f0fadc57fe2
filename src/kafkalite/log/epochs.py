"""Leader epochs of a log: which epoch began at which offset.

Owns the list and the `leader-epoch-checkpoint` file. It never decides about truncation; it answers
the questions from which others do. Invariant: epochs and start offsets both rise strictly, from
entry to entry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

from kafkalite.env.disk import Disk
from kafkalite.log.checkpoints import read_epochs, write_epochs
from kafkalite.log.names import LEADER_EPOCHS

UNDEFINED = -1


class LeaderEpochs:
    """The epochs of one log, oldest first."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = UNDEFINED

    @classmethod
    def load(cls, disk: Disk, directory: str) -> LeaderEpochs:
        return cls.of(read_epochs(disk, f"{directory}/{LEADER_EPOCHS}"))

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int]]) -> LeaderEpochs:
        epochs = cls()
        for epoch, start in entries:
            epochs.assign(epoch, start)
        return epochs

    def save(self, disk: Disk, directory: str) -> None:
        write_epochs(disk, f"{directory}/{LEADER_EPOCHS}", self.entries())

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start: int) -> bool:
        """Notes that `epoch` began at `start`; entries that contradict it go. True when something
        changed."""
        if epoch == self.latest and start >= self._starts[-1]:
            return False
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start)
        self.latest = epoch
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch up to the one asked for and where it ends; (-1, -1) when that is not
        known."""
        if epoch == UNDEFINED:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, log_end_offset
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return UNDEFINED, UNDEFINED
        return (self._epochs[higher - 1] if higher else epoch), self._starts[higher]

    def epoch_at(self, offset: int) -> int:
        """The epoch in which an offset was written, or -1."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else UNDEFINED

    def truncate_end(self, end_offset: int) -> bool:
        """Forgets the epochs that began at or after an offset; True when something changed."""
        keep = bisect_left(self._starts, end_offset)
        if keep == len(self._starts):
            return False
        del self._epochs[keep:]
        del self._starts[keep:]
        self.latest = self._epochs[-1] if self._epochs else UNDEFINED
        return True

    def truncate_start(self, start_offset: int) -> bool:
        """Forgets what lies below an offset; the epoch that spans it now begins there."""
        first = bisect_right(self._starts, start_offset) - 1
        if first < 0 or (first == 0 and self._starts[0] == start_offset):
            return False
        del self._epochs[:first]
        del self._starts[:first]
        self._starts[0] = start_offset
        return True

    def fit(self, start_offset: int, end_offset: int) -> bool:
        """Brings them to where a log begins and ends; True when that changed them."""
        is_cut = self.truncate_end(max(end_offset, start_offset))
        return self.truncate_start(start_offset) or is_cut

    def agrees_with(
        self, found: LeaderEpochs, epoch_from: Callable[[int], int | None]
    ) -> bool:
        """Whether these say of each batch of a log what it says itself, where `found` has the first
        batch of each epoch, and `epoch_from` tells that of the first batch from an offset on; the
        old message formats do not tell theirs."""
        if any(self.epoch_at(start) != epoch for epoch, start in found.entries()):
            return False
        there = ((epoch, epoch_from(start)) for epoch, start in self.entries())
        return all(batch is None or batch >= epoch for epoch, batch in there)

    def clear(self) -> bool:
        """Forgets everything; True when something changed."""
        changed = bool(self._epochs)
        self._epochs.clear()
        self._starts.clear()
        self.latest = UNDEFINED
        return changed
