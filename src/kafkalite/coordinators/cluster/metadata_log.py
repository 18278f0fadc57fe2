"""The log of the cluster's metadata, `__cluster_metadata-0`, with its snapshots.

Owns the directory: the log, the snapshots, and `quorum-state`, where Apache Kafka keeps the epoch
of its controllers. Every start begins a new epoch. Never knows what a record means. Invariant: the
log's start is nought or the end of a snapshot that is there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.cluster.snapshots import (
    BrokenSnapshot,
    SnapshotId,
    list_snapshots,
    read_snapshot,
    write_snapshot,
)
from kafkalite.coordinators.effects import Record
from kafkalite.env.disk import read_whole, replace_file
from kafkalite.env.later import Later
from kafkalite.log.config import LogConfig
from kafkalite.log.home import LogHome
from kafkalite.log.loader import Opening, load_log
from kafkalite.log.partition_log import AppendOrigin, PartitionLog
from kafkalite.protocol import codec
from kafkalite.protocol.messages import LeaderChangeMessage
from kafkalite.records.batch import iterate_headers
from kafkalite.records.control import ControlType, build_control_batch
from kafkalite.records.record import BatchBuilder, iterate_records

logger = logging.getLogger(__name__)

TOPIC = "__cluster_metadata"
DIRECTORY = f"{TOPIC}-0"
QUORUM_STATE = "quorum-state"
# The topic id of the metadata log, the same in every cluster.
TOPIC_ID = bytes(15) + b"\x01"
READ_BYTES = 1 << 20
# Kafka's own bound on a batch of metadata; a decision is one batch, so this bounds decisions.
MAX_BATCH_BYTES = 8 << 20


class MetadataLog:
    """Reads the whole state once, then appends to it."""

    def __init__(self, home: LogHome, node_id: int, segment_bytes: int) -> None:
        self.home = home
        self.disk = home.disk
        self.node_id = node_id
        self.directory = f"{home.path}/{DIRECTORY}"
        config = LogConfig(segment_bytes=segment_bytes, max_message_bytes=MAX_BATCH_BYTES)
        self.is_new = not self.disk.exists(self.directory)
        self.log = self._create(config) if self.is_new else self._load(config)
        self.epoch = 0
        self.bytes_since_snapshot = 0

    def _create(self, config: LogConfig) -> PartitionLog:
        return PartitionLog.create(self.home, TOPIC, 0, TOPIC_ID, self.directory, config)

    def _load(self, config: LogConfig) -> PartitionLog:
        """Opens the log. It is small, so it is always checked as after a crash."""
        return load_log(self.home, Opening(TOPIC, 0, self.directory, config))

    @property
    def end_offset(self) -> int:
        """The offset that the next record will have."""
        return self.log.log_end_offset

    # --- reading ------------------------------------------------------------------------------

    def read_all(self) -> Iterator[Any]:
        """Every message: the newest whole snapshot, and what the log has behind it."""
        position = self.log.log_start_offset
        snapshot, messages = self._newest_snapshot()
        if snapshot is not None:
            yield from messages
            position = snapshot.end_offset
            if position > self.end_offset:
                self.log.truncate_fully_and_start_at(position)
        elif position > 0:
            raise BrokenSnapshot(f"{self.directory} begins at {position} without a snapshot")
        yield from self._messages_from(position)

    def _newest_snapshot(self) -> tuple[SnapshotId | None, list[Any]]:
        for snapshot in reversed(list_snapshots(self.disk, self.directory)):
            try:
                return snapshot, read_snapshot(self.disk, self.directory, snapshot)
            except BrokenSnapshot as error:
                logger.warning("a metadata snapshot is passed over: %s", error)
        return None, []

    def _messages_from(self, position: int) -> Iterator[Any]:
        while position < self.end_offset:
            found = self.log.read(position, READ_BYTES)
            assert found.range is not None, "the metadata log has a gap"
            data = found.range.read()
            self.bytes_since_snapshot += len(data)
            for header in iterate_headers(data):
                for record in iterate_records(data, header) if not header.is_control else ():
                    if record.offset >= position and record.value is not None:
                        yield decode_record(record.value)
                position = max(position, header.next_offset)

    # --- writing ------------------------------------------------------------------------------

    def begin_epoch(self) -> None:
        """Takes the lead in a new epoch, and says so in the log; records are written after it."""
        self.epoch = max(self._last_epoch(), self.log.epochs.latest, 0) + 1
        self._write_quorum_state()
        voter = LeaderChangeMessage.Voter(voter_id=self.node_id)
        message = LeaderChangeMessage(
            version=0, leader_id=self.node_id, voters=[voter], granting_voters=[voter]
        )
        now_ms = self.home.env.clock.now_ms()
        batch = build_control_batch(
            ControlType.LEADER_CHANGE,
            codec.encode(message, 0),
            timestamp=now_ms,
            base_offset=self.end_offset,
            partition_leader_epoch=self.epoch,
        )
        self._append(batch, now_ms)

    def append(self, records: list[Record]) -> None:
        """Appends records as one batch; raises KafkaError, and then nothing has changed."""
        now_ms = self.home.env.clock.now_ms()
        builder = BatchBuilder()
        for record in records:
            builder.append(now_ms, None, record.value)
        self._append(builder.build(self.end_offset, self.epoch), now_ms)

    def _append(self, batch: bytearray, now_ms: int) -> None:
        view = memoryview(batch)
        self.log.append_as_leader(view, self.epoch, AppendOrigin.RAFT, now_ms)
        self.log.high_watermark = self.end_offset
        self.bytes_since_snapshot += len(batch)
        self.log.flush()

    def when_durable(self) -> Later[int]:
        """Filled once all that was written so far is on stable storage."""
        return self.log.when_durable(self.end_offset)

    def _last_epoch(self) -> int:
        try:
            state = json.loads(read_whole(self.disk, f"{self.directory}/{QUORUM_STATE}"))
            return int(state["leaderEpoch"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return 0

    def _write_quorum_state(self) -> None:
        state = {
            "clusterId": "",
            "leaderId": self.node_id,
            "leaderEpoch": self.epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": self.node_id}],
            "data_version": 0,
        }
        text = json.dumps(state, separators=(",", ":"))
        replace_file(self.disk, f"{self.directory}/{QUORUM_STATE}", text.encode())

    # --- snapshots ----------------------------------------------------------------------------

    def write_snapshot(self, messages: Iterator[Any]) -> SnapshotId:
        """Writes what all records so far come to, and drops what it covers from the log."""
        snapshot = SnapshotId(self.end_offset, self.epoch)
        now_ms = self.home.env.clock.now_ms()
        self.bytes_since_snapshot = 0  # also when it fails: not to be tried with every record
        write_snapshot(self.disk, self.directory, snapshot, messages, now_ms)
        self._drop_covered(snapshot)
        return snapshot

    def _drop_covered(self, snapshot: SnapshotId) -> None:
        """Begins a new segment behind a snapshot, and removes older segments and snapshots."""
        if self.log.active.size:
            self.log.roll(snapshot.end_offset)
        self.log.raise_start(snapshot.end_offset)
        paths = [
            f"{self.directory}/{each.file_name}"
            for each in list_snapshots(self.disk, self.directory)
            if each < snapshot
        ]
        for segment in list(self.log.segments[:-1]):
            self.log.drop_segment(segment)
            segment.close()
            paths += [segment.path(kind) for kind in (".log", ".index", ".timeindex")]
        self.home.remove_now(paths)

    def close(self) -> None:
        """Puts everything on stable storage."""
        self.log.close()
