"""The metadata log as its leader serves it to those who follow it over a connection.

Owns what an observer is answered at an offset (records, a snapshot to begin with, or where its log
parts from ours), how far it is to believe them, and how far each observer was when it asked last.
Observers are given committed records alone: with fsync what is on the disk. Reads only.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.sessions import Sessions
from kafkalite.coordinators.cluster.snapshots import SnapshotId, list_snapshots
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import FileRange
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication.partition import Partition

MOST_OBSERVERS = 1000
# Who has not asked for so long is told of no more, as in Apache Kafka.
OBSERVED_MS = 300_000


@dataclass(slots=True)
class Observer:
    """Somebody who follows the log, as of its last question."""

    directory_id: bytes
    log_end_offset: int
    asked_ms: int
    caught_up_ms: int = -1


@dataclass(slots=True)
class Found:
    """What there is behind an offset."""

    records: FileRange | None = None
    diverging: tuple[int, int] | None = None  # an epoch, and where it ends here
    snapshot: SnapshotId | None = None


class QuorumLeader:
    """Of the controller of this process."""

    def __init__(self, controller: LocalController) -> None:
        self._controller = controller
        self.node_id = controller.node_id
        self.endpoints: list[EndPoint] = []  # where it is found, once that is open
        self.observers: dict[int, Observer] = {}
        self._has_asked = False  # to be woken when more is committed

    @property
    def sessions(self) -> Sessions:
        return self._controller.sessions

    @property
    def epoch(self) -> int:
        return self._controller.log.epoch

    @property
    def partition(self) -> Partition:
        """Who waits for more watches it."""
        return self._controller.log.partition

    @property
    def high_watermark(self) -> int:
        log = self.partition.log
        is_synced = self._controller.config.fsync_every_append
        return log.durability.durable_offset if is_synced else log.log_end_offset

    def check_epoch(self, epoch: int) -> None:
        """Raises what tells somebody which epoch it is."""
        if epoch < 0:
            raise KafkaError(Error.INVALID_REQUEST)
        if epoch < self.epoch:
            raise KafkaError(Error.FENCED_LEADER_EPOCH)
        if epoch > self.epoch:
            raise KafkaError(Error.UNKNOWN_LEADER_EPOCH)

    def find(self, offset: int, last_epoch: int, max_bytes: int) -> Found:
        """For somebody who has all below the offset, the last of it in that epoch."""
        log = self.partition.log
        start = log.log_start_offset
        if (start, offset, last_epoch) == (0, 0, 0):
            return Found(self._read(offset, max_bytes))
        snapshots = self._snapshots() if start > 0 else []
        if snapshots and self._needs_snapshot(snapshots[0], offset, last_epoch):
            return Found(snapshot=snapshots[-1])
        epoch, end = self.partition.end_offset_for_epoch(last_epoch)
        if epoch != last_epoch or end < offset:
            return Found(diverging=(max(epoch, 0), max(end, start)))
        return Found(self._read(offset, max_bytes))

    def _needs_snapshot(self, first: SnapshotId, offset: int, last_epoch: int) -> bool:
        start = self.partition.log.log_start_offset
        is_other_start = offset == start and last_epoch != first.epoch
        return offset < start or is_other_start or last_epoch < first.epoch

    def _read(self, offset: int, max_bytes: int) -> FileRange | None:
        committed = self.high_watermark
        self._wake_when_committed()
        return self.partition.log.read(offset, max_bytes, committed).range

    def _wake_when_committed(self) -> None:
        log = self._controller.log
        if self.high_watermark < log.end_offset and not self._has_asked:
            self._has_asked = True
            log.when_durable().then(self._committed)

    def _committed(self, error: KafkaError | None) -> None:
        self._has_asked = False
        if error is None:
            self.partition.wake()

    # --- snapshots --------------------------------------------------------------------------------

    def _snapshots(self) -> list[SnapshotId]:
        """From the one that the log begins behind."""
        log = self._controller.log
        start = self.partition.log.log_start_offset
        return [each for each in list_snapshots(log.disk, log.directory)
                if each.end_offset >= start]

    def read_snapshot(
        self, wanted: SnapshotId, position: int, max_bytes: int
    ) -> tuple[bytes, int]:
        """A piece of a snapshot, and the size of all of it."""
        log = self._controller.log
        try:
            file = log.disk.open(f"{log.directory}/{wanted.file_name}")
            try:
                size = file.size()
                if not 0 <= position < size:
                    raise KafkaError(Error.POSITION_OUT_OF_RANGE)
                return file.read_at(position, min(max_bytes, size - position)), size
            finally:
                file.close()
        except FileNotFoundError:
            raise KafkaError(Error.SNAPSHOT_NOT_FOUND) from None
        except OSError as error:
            raise log.home.storage_error(error) from error

    # --- observers --------------------------------------------------------------------------------

    def observed(self, broker_id: int, directory_id: bytes, offset: int) -> None:
        """Somebody asks from this offset on."""
        if broker_id < 0:
            return
        now_ms = self._controller.env.clock.now_ms()
        old = self.observers.pop(broker_id, None)
        caught_up_ms = -1 if old is None else old.caught_up_ms
        if offset >= self.high_watermark:
            caught_up_ms = now_ms
        self.observers[broker_id] = Observer(directory_id, offset, now_ms, caught_up_ms)
        first = next(iter(self.observers))  # who has not asked for longest
        silent_ms = now_ms - self.observers[first].asked_ms
        if silent_ms > OBSERVED_MS or len(self.observers) > MOST_OBSERVERS:
            del self.observers[first]
