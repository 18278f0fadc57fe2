"""One partition's log as it is in memory: its segments, its offsets, and who wrote to it.

Owns these, and the small changes after which they still agree with each other; those that take
several steps are made by `appending`, `rolling`, `truncation` and `retention`. It never writes a
record and never waits for a disk. Invariant: log_start <= last_stable <= high_watermark <= log_end,
and offsets never change once given.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial

from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps, finish
from kafkalite.log.config import LogConfig
from kafkalite.log.durability import Durability
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.log.home import LogHome
from kafkalite.log.names import METADATA_DIRECTORY
from kafkalite.log.producers import LookBack, Producers
from kafkalite.log.replay import look_back
from kafkalite.log.seals import Seals
from kafkalite.log.segment import Segment
from kafkalite.log.snapshots import write_snapshot
from kafkalite.log.watermark import Watermark
from kafkalite.protocol.errors import KafkaError


class LogState:
    """One partition's log as it is in memory."""

    __slots__ = (
        "_snapshot_offset",
        "bases",
        "being_cut",
        "config",
        "directory",
        "durability",
        "epochs",
        "home",
        "is_future",
        "last_flush_ms",
        "leaving",
        "log_end_offset",
        "log_start_offset",
        "lost",
        "partition",
        "producers",
        "recovery_point",
        "reloading",
        "roll_jitter_ms",
        "seals",
        "segments",
        "topic",
        "topic_id",
        "watermark",
    )

    def __init__(
        self,
        home: LogHome,
        topic: str,
        partition: int,
        topic_id: bytes,
        directory: str,
        config: LogConfig,
        segments: list[Segment],
    ) -> None:
        self.home = home
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = directory
        self.config = config
        self.segments = segments
        self.leaving: list[Segment] = []  # out of the log, while somebody may still send from them
        self.bases = [segment.base_offset for segment in segments]
        self.epochs = LeaderEpochs()
        self.producers: Producers | None = None  # until a producer with an id comes
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = segments[-1].base_offset
        self.recovery_point = self.log_end_offset
        self.is_future = False
        self.being_cut: Later[KafkaError | None] | None = None  # until that is over
        self.reloading: Steps[None] | None = None  # its producers, after a cut
        self.lost: KafkaError | None = None  # why nothing more comes of it: deleted, moved, offline
        self.last_flush_ms = home.env.clock.now_ms()
        self.watermark = Watermark(home.env.clock, self.log_start_offset)
        self.durability = Durability(self, self.log_end_offset)
        self.seals: Seals | None = None
        if not directory.endswith(f"/{METADATA_DIRECTORY}"):  # who reads it needs offsets only
            self.seals = Seals(topic, partition, topic_id)
        self._snapshot_offset = self.log_end_offset  # nothing new for a snapshot before this
        self.roll_jitter_ms = 0
        self.draw_jitter()

    def __repr__(self) -> str:
        offsets = f"{self.log_start_offset}..{self.log_end_offset}"
        return f"{type(self).__name__}({self.directory}, {offsets})"

    # --- offsets ----------------------------------------------------------------------------------

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def high_watermark(self) -> int:
        """Everything below it is replicated."""
        return self.watermark.offset

    def replicated(self, offset: int) -> bool:
        """Everything below an offset is, as whoever has the role for it knows; False when that is
        no news. The one way for the high watermark to rise, and nobody else calls it."""
        assert offset <= self.log_end_offset, f"{self} has nothing to replicate below {offset}"
        is_news = self.watermark.raise_to(offset)
        if is_news and self.producers is not None:
            self.producers.replicated(offset)
        return is_news

    def cut(self, end_offset: int) -> None:
        """Nothing is left above an offset, and nothing more was replicated."""
        self.log_end_offset = end_offset
        self.watermark.cut_to(end_offset)
        self.durability.truncated(end_offset)

    def begin_at(self, offset: int, high_watermark: int) -> None:
        """Nothing lies below an offset, in a log that is opened or made empty; and what is known to
        be replicated of it."""
        assert offset <= high_watermark <= self.log_end_offset
        self.log_start_offset = offset
        self.watermark.lower_to(high_watermark)
        self.watermark.raise_to(high_watermark)
        if self.producers is not None:
            self.producers.replicated(high_watermark)

    def take_watermark(self, other: LogState) -> None:
        """Goes on where another log of this partition was, and with who waits there."""
        assert other.high_watermark <= self.log_end_offset
        self.watermark = other.watermark
        if self.producers is not None:
            self.producers.replicated(self.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Below this every transaction is decided, and its decision replicated."""
        unstable = self.producers.first_unstable if self.producers is not None else None
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def knows_what_is_stable(self) -> bool:
        """Not after a cut until its producers are read again: what decided a transaction may have
        gone with it."""
        return self.reloading is None or self.producers is None

    @property
    def is_durable_on_append(self) -> bool:
        """Whether an append may be acknowledged before it is on stable storage."""
        return not self.config.is_fsynced

    def loaded(
        self,
        end_offset: int,
        recovery_point: int,
        producers: Producers | None,
        snapshot_offset: int,
    ) -> None:
        """Takes over what was found in the files."""
        self.log_end_offset = end_offset
        self.recovery_point = recovery_point
        self.durability = Durability(self, recovery_point)
        if recovery_point < end_offset:
            self.durability.directory_changed(is_new=True)
        self._snapshot_offset = snapshot_offset
        self.producers = producers
        if producers is not None:
            producers.look_back = self.look_back

    # --- segments ---------------------------------------------------------------------------------

    def slot_of(self, offset: int) -> int:
        """The index of the segment that an offset belongs to; -1 below the first."""
        return bisect_right(self.bases, offset) - 1

    def draw_jitter(self) -> None:
        """How much sooner the last segment ends: logs that began together need not roll
        together."""
        bound = min(self.config.segment_jitter_ms, self.config.segment_ms)
        self.roll_jitter_ms = self.home.env.random.randrange(bound) if bound > 0 else 0

    def add_segment(self, segment: Segment) -> None:
        slot = self.slot_of(segment.base_offset) + 1
        self.segments.insert(slot, segment)
        self.bases.insert(slot, segment.base_offset)
        self.durability.directory_changed()

    def drop_segment(self, segment: Segment) -> None:
        """Takes a segment out of the log; its files are the caller's now."""
        slot = self.segments.index(segment)
        del self.segments[slot]
        del self.bases[slot]
        self.durability.directory_changed()

    def take_snapshot(self, offset: int) -> None:
        """Keeps the producers as they are at an offset, unless that was done."""
        if self.reloading is not None:
            finish(self.reloading)
        if offset > self._snapshot_offset:
            path = write_snapshot(self.home.disk, self.directory, self.producers, offset)
            self.durability.snapshot_written(path)
            self._snapshot_offset = offset
            if self.seals is not None:
                self.seals.add_snapshot(self.home.disk, self.directory, offset)

    def seal(self, segment: Segment, next_offset: int) -> None:
        """A segment's files are complete, and the next one begins at an offset."""
        if self.seals is not None:
            self.seals.add_segment(self.home.disk, self.directory, segment, next_offset)

    def flush(self) -> None:
        """Has everything written so far made durable, and the recovery point moved."""
        if not self.durability.is_complete:
            self.durability.flush(is_complete=True)

    def raise_start(self, offset: int) -> None:
        """Forgets what lies below an offset, which is replicated."""
        if offset <= self.log_start_offset:
            return
        assert offset <= self.high_watermark, f"{self} is not replicated up to {offset}"
        self.log_start_offset = offset
        if self.epochs.truncate_start(offset):
            self.durability.epochs_changed()

    # --- producers and epochs ---------------------------------------------------------------------

    def needed_producers(self) -> Producers:
        """Its producers, from now on if there were none."""
        if self.producers is None:
            self.producers = Producers(self.look_back, self.log_end_offset)
        return self.producers

    def snapshot_taken(self, offset: int) -> None:
        """The newest snapshot of the producers is that of an offset."""
        self._snapshot_offset = offset

    @property
    def look_back(self) -> LookBack:
        """Tells the batches of a producer before those of its snapshot; it holds no log."""
        return partial(look_back, self.segments)

    def begin_epoch(self, epoch: int) -> None:
        """A leader's epoch begins at the log's end; in an empty log its first batch says so."""
        if self.log_end_offset > 0 and self.epochs.assign(epoch, self.log_end_offset):
            self.durability.epochs_changed()

    # --- failures ---------------------------------------------------------------------------------

    def storage_error(self, error: OSError) -> KafkaError:
        """What a peer is told of a failure with the files. Those of a log that is out of service
        may be gone, which is no failure of their disk."""
        if self.lost is not None and isinstance(error, FileNotFoundError):
            return KafkaError(self.lost.code, self.lost.message)
        return self.home.storage_error(error)
