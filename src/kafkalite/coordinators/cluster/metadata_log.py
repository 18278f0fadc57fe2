"""The log of the cluster's metadata, `__cluster_metadata-0`, with its snapshots.

Owns the directory: the log, the snapshots, and `quorum-state`, where Apache Kafka keeps the epoch
of its controllers. Every start begins a new epoch. Never knows what a record means. Invariants: the
log's start is nought or the end of a snapshot that is there, and nothing is written before `open`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kafkalite.coordinators.cluster.quorum import QUORUM_STATE, Quorum
from kafkalite.coordinators.cluster.snapshots import (
    BrokenSnapshot,
    SnapshotId,
    SnapshotWriter,
    list_snapshots,
)
from kafkalite.coordinators.cluster.stored import Stored
from kafkalite.coordinators.effects import Record
from kafkalite.env.background import Gate
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.log.checkpoints import write_partition_metadata
from kafkalite.log.config import LogConfig
from kafkalite.log.home import LogHome
from kafkalite.log.loader import Opening, load_log
from kafkalite.log.making import NewLog
from kafkalite.log.names import PARTITION_METADATA, SEGMENT_SUFFIXES, offset_name
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.control import build_control_batch
from kafkalite.records.record import BatchBuilder
from kafkalite.replication.leader import Leadership
from kafkalite.replication.partition import Partition

__all__ = ["DIRECTORY", "QUORUM_STATE", "TOPIC", "TOPIC_ID", "MetadataLog"]

TOPIC = "__cluster_metadata"
DIRECTORY = f"{TOPIC}-0"
# The topic id of the metadata log, the same in every cluster.
TOPIC_ID = bytes(15) + b"\x01"
# Kafka's own bound on a batch of metadata; a decision is one batch, so this bounds decisions.
MAX_BATCH_BYTES = 8 << 20
_AT_ONCE = 32  # records


@dataclass(slots=True, frozen=True)
class Snapshot:
    """One that is all encoded, and what it covers."""

    covers: SnapshotId
    write: Callable[[], None]


class MetadataLog:
    """Reads the whole state once, is opened then, and appended to."""

    log: PartitionLog
    partition: Partition  # led by this node alone

    def __init__(
        self, home: LogHome, node_id: int, segment_bytes: int, directory_id: bytes = bytes(16)
    ) -> None:
        self.home = home
        self.disk = home.disk
        self.node_id = node_id
        self.directory = f"{home.path}/{DIRECTORY}"
        self.quorum = Quorum(home.disk, self.directory, node_id, directory_id)
        self.stored = Stored(home.disk, self.directory, self.quorum)
        self.config = LogConfig(segment_bytes=segment_bytes, max_message_bytes=MAX_BATCH_BYTES)
        self.epoch = 0
        self.bytes_since_snapshot = 0
        self._background = home.env.background
        self._gate = Gate()  # for workers
        self._is_closed = False

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        return self.log.log_end_offset

    # --- reading ------------------------------------------------------------------------------

    def read_all(self) -> Iterator[object]:
        """Every message: the newest whole snapshot, and what the log has behind it. Raises
        ForeignQuorum when the log is another controller's to go on with."""
        voted_epoch = self.quorum.read_state()
        yield from self.stored.read()
        self.quorum.check()
        self.epoch = max(voted_epoch, self.stored.epoch)

    def read_again(self) -> list[object]:
        """Every message as it lies on the disk now, while this log is written. Raises one of
        `refusal.CAUSES`."""
        quorum = Quorum(self.disk, self.directory, self.quorum.node_id, self.quorum.directory_id)
        stored = Stored(self.disk, self.directory, quorum)
        messages = self._gate.let(lambda: list(stored.read()))  # no worker removes what is read
        if messages is None or stored.end_offset != self.end_offset:
            raise BrokenSnapshot(f"it ends at {stored.end_offset}, and not at {self.end_offset}")
        return messages

    # --- writing ------------------------------------------------------------------------------

    def open(self) -> None:
        """Makes the log ready for records, behind all that was read."""
        end_offset = self.stored.end_offset
        if self.disk.exists(self.directory):
            self._name_topic()
            self._remove_covered()
            # It is small, so it is always checked as after a crash.
            self.log = load_log(self.home, Opening(TOPIC, 0, self.directory, self.config))
        else:
            new = NewLog(self.home, TOPIC, 0, TOPIC_ID, self.directory, self.config)
            self.log = new.taken(new.make_files())
        if self.end_offset < end_offset:
            self.log.truncate_fully_and_start_at(end_offset)
        assert self.end_offset == end_offset, "the log has records that were not read"
        self.partition = Partition(TOPIC, 0, TOPIC_ID, self.node_id, self.log)
        self.bytes_since_snapshot = self.stored.bytes_behind_snapshot
        self.home.when_failed(self.log.gone_offline)

    def _name_topic(self) -> None:
        """A directory that was only formatted does not say yet whose log it holds."""
        path = f"{self.directory}/{PARTITION_METADATA}"
        if not self.disk.exists(path):
            write_partition_metadata(self.disk, path, TOPIC_ID)

    def _remove_covered(self) -> None:
        """Apache Kafka keeps old segments for a week; damage in one must not cut those behind it.
        Oldest first, so that a crash leaves no gap."""
        names = self.disk.list_directory(self.directory)
        for base_offset in self.stored.covered:
            for kind in SEGMENT_SUFFIXES:
                if offset_name(base_offset, kind) in names:
                    self.disk.remove(f"{self.directory}/{offset_name(base_offset, kind)}")

    def begin_epoch(self) -> None:
        """Takes the lead in a new epoch, and says so in the log; records are written after it."""
        self.epoch = max(self.epoch, self.log.epochs.latest, 0) + 1
        self.quorum.write_state(self.epoch)
        alone = (self.node_id,)
        self.partition.take(Leadership(self.node_id, self.epoch, 0, alone, alone))
        self.partition.begin_epoch()
        now_ms = self.home.env.clock.now_ms()
        batch = build_control_batch(
            self.quorum.epoch_records(),
            timestamp=now_ms,
            base_offset=self.end_offset,
            partition_leader_epoch=self.epoch,
        )
        self._append(batch, now_ms)

    def batch_of(self, records: list[Record]) -> Steps[BatchBuilder]:
        """The batch that records are to be appended as."""
        now_ms = self.home.env.clock.now_ms()
        builder = BatchBuilder()
        for number, record in enumerate(records):
            builder.append(now_ms, None, record.value)
            if (number + 1) % _AT_ONCE == 0:
                yield
        return builder

    def append(self, builder: BatchBuilder) -> None:
        """Appends a batch; raises KafkaError, and then nothing has changed."""
        batch = builder.build(self.end_offset, self.epoch)
        self._append(batch, builder.max_timestamp)

    def _append(self, batch: bytearray, now_ms: int) -> None:
        view = memoryview(batch)
        self.log.append_as_leader(view, self.epoch, AppendOrigin.RAFT, now_ms)
        self.partition.settle()
        self.bytes_since_snapshot += len(batch)
        self.log.flush()

    @property
    def is_durable(self) -> bool:
        """Whether all written so far is on stable storage."""
        return self.log.durability.durable_offset >= self.end_offset

    def when_durable(self) -> Later[KafkaError | None]:
        """Filled once all written so far is on stable storage, or with why it cannot be."""
        return self.log.when_durable(self.end_offset)

    # --- snapshots ----------------------------------------------------------------------------

    def snapshot(self, messages: Iterator[object], level: int) -> Steps[Snapshot]:
        """What all records so far come to, as a level of metadata.version has it, to be written.
        The log goes on in a new segment, so that what it covers can go."""
        covers = SnapshotId(self.end_offset, self.epoch)
        self.bytes_since_snapshot = 0  # also when it fails: not to be tried with every record
        writer = SnapshotWriter(self.disk, self.directory, level, self.home.env.clock.now_ms())
        write = yield from writer.write(covers, self.quorum.snapshot_records(), messages)
        assert self.end_offset == covers.end_offset, "records came while it was encoded"
        if self.log.active.size:
            self.log.roll()
        return Snapshot(covers, write)

    def write_now(self, snapshot: Snapshot) -> None:
        """However long the disk takes; nothing else may be under way."""
        snapshot.write()
        self._drop_covered(snapshot.covers)()

    def write_later(self, snapshot: Snapshot, done: Callable[[BaseException | None], None]) -> None:
        """By a worker, and then drops what it covers from the log; `done` is told when it lasts or
        what went wrong, and not at all after `close`."""

        def written(outcome: BaseException | None) -> None:
            if self._is_closed:
                return
            if outcome is None:
                remove = self._drop_covered(snapshot.covers)
                self._background.submit(lambda: self._gate.let(remove), _raise)
            done(outcome)

        self._background.submit(lambda: self._gate.let(snapshot.write), written)

    def _drop_covered(self, covers: SnapshotId) -> Callable[[], None]:
        """Forgets older segments, now that a snapshot lasts; returns what removes their files, and
        those of older snapshots."""
        self.log.raise_start(covers.end_offset)
        paths = []
        while len(self.log.segments) > 1 and self.log.segments[1].base_offset <= covers.end_offset:
            segment = self.log.segments[0]
            self.log.drop_segment(segment)
            segment.close()
            paths += [segment.path(kind) for kind in (".log", ".index", ".timeindex")]

        def remove() -> None:
            snapshots = list_snapshots(self.disk, self.directory)
            older = [each for each in snapshots if each < covers]
            self.home.remove_now([f"{self.directory}/{each.file_name}" for each in older] + paths)

        return remove

    def end_background(self) -> None:
        """No worker is at a file of this log any more, nor will be."""
        self._is_closed = True
        self._gate.shut()

    def close(self) -> None:
        """Puts everything on stable storage. Who waits for what could not be put there is told."""
        self.end_background()
        try:
            self.log.close()
        finally:
            self.log.end(KafkaError(Error.KAFKA_STORAGE_ERROR, f"{self.directory} is closed"))


def _raise(outcome: BaseException | None) -> None:
    """What goes wrong in a worker by a mistake of ours is the loop's to tell."""
    if outcome is not None:
        raise outcome
