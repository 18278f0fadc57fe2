"""The metadata log as a broker follows it, and the image that it comes to.

Owns the batches that are not committed yet, and the fold: what was committed goes into the image,
and is told, when it is; at a start, and behind a snapshot, all of it at once, so that nobody acts
on what has long been otherwise. Nothing of it is on this broker's disk: a start reads all again.
Invariant: the image is that of the controller at `metadata.offset`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.features import check_finalized
from kafkalite.coordinators.cluster.folding import AT_ONCE, Folded, folded
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.quorum import kraft_version_in
from kafkalite.coordinators.cluster.records import read_record
from kafkalite.coordinators.cluster.shard import ClusterShard
from kafkalite.coordinators.cluster.snapshots import SnapshotId, read_contents
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.protocol.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from kafkalite.records.batch import BatchHeader, iterate_headers, verify
from kafkalite.records.control import ControlType, read_type
from kafkalite.records.record import iterate_records

if TYPE_CHECKING:
    from random import Random

BOUNDS = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)


class FollowedLog:
    """Of one broker."""

    def __init__(self, metadata: Metadata, config: BrokerConfig, chance: Random) -> None:
        self.metadata = metadata
        self._config, self._chance = config, chance
        self._shard = ClusterShard(metadata.image, config, chance)
        self._loading: ClusterShard | None = self._fresh()
        self._pending: deque[tuple[BatchHeader, bytes]] = deque()  # not folded in yet
        self._folded_end = 0
        self.end_offset = 0
        self.last_epoch = 0
        self.high_watermark = -1
        # Filled when the image is that of the controller for the first time.
        self.caught_up: Later[None] = Later()

    def _fresh(self) -> ClusterShard:
        return ClusterShard(Image(), self._config, self._chance)

    # --- what comes -------------------------------------------------------------------------------

    def add(self, data: bytes) -> None:
        """What was fetched at the end; raises CorruptRecords, and then nothing of it is taken."""
        batches = []
        for header in iterate_headers(data):
            verify(data, header)
            if header.next_offset > self.end_offset:
                batches.append((header, data[header.position : header.end]))
        for header, batch in batches:
            self._pending.append((header, batch))
            self.end_offset = header.next_offset
            self.last_epoch = header.partition_leader_epoch

    def parts_at(self, epoch: int, end_offset: int) -> None:
        """The leader's log has this epoch end there: what was fetched behind that is not its own.
        What was committed cannot part; where it does, all is read again."""
        if end_offset < self._folded_end:
            self.begin_again()
            return
        while self._pending and self._pending[-1][0].next_offset > end_offset:
            self._pending.pop()
        last = self._pending[-1][0] if self._pending else None
        self.end_offset = self._folded_end if last is None else last.next_offset
        self.last_epoch = epoch if last is None else last.partition_leader_epoch

    def begin_again(self) -> None:
        """Reads all from the beginning; the image stays as it is until that is through."""
        self._loading = self._fresh()
        self._pending.clear()
        self._folded_end = self.end_offset = self.last_epoch = 0

    def begin_with(self, snapshot: SnapshotId, data: bytes) -> Steps[None]:
        """Takes a snapshot in place of all below its end; raises BrokenSnapshot."""
        self.begin_again()
        loading = self._loading
        assert loading is not None
        contents = yield from read_contents(data, snapshot.file_name)
        for record in contents.control_records:
            self._take_control(record.key, record.value)
        for number, message in enumerate(contents.messages, 1):
            loading.fold(message)
            if number % AT_ONCE == 0:
                yield
        self._folded_end = self.end_offset = snapshot.end_offset
        self.last_epoch = snapshot.epoch

    def stop(self) -> None:
        """Nothing more comes: nobody waits for the image any longer."""
        if not self.caught_up.is_resolved:
            self.caught_up.resolve(None)

    # --- what is committed ------------------------------------------------------------------------

    def commit(self, high_watermark: int) -> Steps[None]:
        """Folds in what is committed, and tells of it. Raises UnknownMetadata or ImageConflict for
        what is not understood: the image is then not to be gone on from."""
        self.high_watermark = high_watermark
        messages: list[object] = []
        while self._pending and self._pending[0][0].next_offset <= high_watermark:
            header, batch = self._pending.popleft()
            yield from self._read(batch, messages)
            self._folded_end = header.next_offset
        if self._loading is not None:
            yield from self._load(self._loading, messages)
        elif self._folded_end - 1 > self.metadata.offset:
            yield from self._fold(messages)

    def _read(self, batch: bytes, messages: list[object]) -> Steps[None]:
        for header in iterate_headers(batch):
            for number, record in enumerate(iterate_records(batch, header), 1):
                if header.is_control:
                    self._take_control(record.key, record.value)
                elif record.value is not None:
                    messages.append(read_record(record.value))
                if number % AT_ONCE == 0:
                    yield

    def _take_control(self, key: bytes | None, value: bytes | None) -> None:
        if read_type(key) == ControlType.KRAFT_VERSION:
            self.metadata.kraft_version = kraft_version_in(value or b"")

    def _load(self, loading: ClusterShard, messages: list[object]) -> Steps[None]:
        for number, message in enumerate(messages, 1):
            loading.fold(message)
            if number % AT_ONCE == 0:
                yield
        if self._folded_end < self.high_watermark or self.high_watermark <= 0:
            return  # there is more to come
        check_finalized(loading.image)
        self._loading = None
        changes = self.metadata.replace(loading.image, self._folded_end - 1)
        self._shard.hold_back_as(loading)
        self.metadata.publish(changes)
        if not self.caught_up.is_resolved:
            self.caught_up.resolve(None)

    def _fold(self, messages: list[object]) -> Steps[None]:
        prepared: list[object] | Folded = messages
        is_bound = self._shard.is_in_transaction or any(isinstance(one, BOUNDS) for one in messages)
        if len(messages) > AT_ONCE and not is_bound:
            prepared = yield from folded(self.metadata.image, messages)
        changes = self._shard.take(prepared)
        check_finalized(self.metadata.image)
        self.metadata.offset = self._folded_end - 1
        self.metadata.publish(changes)
