"""Follows the metadata log of a controller that is elsewhere.

Owns the questions: records from the end of what is there, and a snapshot piece by piece where the
leader's log begins later. One question at a time, a slice per turn for what its answer brings.
Invariant: after `stop`, or when something came that is not understood, nothing more is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from kafkalite.coordinators.cluster.followed_log import FollowedLog
from kafkalite.coordinators.cluster.image import ImageConflict
from kafkalite.coordinators.cluster.records import UnknownMetadata
from kafkalite.coordinators.cluster.snapshots import BrokenSnapshot, SnapshotId
from kafkalite.env import Env
from kafkalite.env.clock import Timer
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps, Work, caught
from kafkalite.peers.channel import Channel
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from kafkalite.records.errors import CorruptRecords

logger = logging.getLogger(__name__)

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
FETCH_VERSIONS = range(13, 19)
SNAPSHOT_VERSIONS = range(2)
MAX_WAIT_MS = 500
MOST_SNAPSHOT_BYTES = 1 << 30
# What nobody can go on from, but for a newer release or another cluster.
FATAL = (UnknownMetadata, ImageConflict)


@dataclass(slots=True, frozen=True)
class Follower:
    """Who follows, and how much it asks for at once."""

    node_id: int
    cluster_id: str
    directory_id: bytes
    max_bytes: int
    max_snapshot_bytes: int
    backoff_ms: int


class MetadataFetcher:
    """Of one broker."""

    def __init__(
        self,
        env: Env,
        channel: Channel,
        follower: Follower,
        log: FollowedLog,
        failed: Callable[[Exception], None],
    ) -> None:
        """`failed` is told of what cannot be gone on from."""
        self._env, self._channel, self._follower = env, channel, follower
        self._log, self._failed = log, failed
        self._epoch = 0
        self._snapshot: SnapshotId | None = None  # that is fetched now
        self._pieces = bytearray()
        self._timer: Timer | None = None
        self._is_stopped = False
        self._has_problem = False
        self.leader_id = -1

    def start(self) -> None:
        self._ask()

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._env.slices.drop(self)

    def _ask(self) -> None:
        self._timer = None
        if self._is_stopped:
            return
        if self._snapshot is not None:
            asked = self._channel.ask(self._snapshot_request(self._snapshot), SNAPSHOT_VERSIONS)
            asked.then(partial(self._answered, self._take_piece))
        else:
            self._channel.ask(self._fetch_request(), FETCH_VERSIONS).then(
                partial(self._answered, self._take)
            )

    def _answered(
        self,
        take: Callable[[FetchResponse | FetchSnapshotResponse], Steps[None]],
        answer: FetchResponse | FetchSnapshotResponse | KafkaError,
    ) -> None:
        if self._is_stopped:
            return
        if isinstance(answer, KafkaError):
            self._again(answer.message or answer.code.name)
            return
        self._env.slices.begin(Work(caught(take(answer)), self._taken, owner=self))

    def _taken(self, outcome: Exception | None) -> None:
        if outcome is None:
            self._has_problem = False
            self._ask()
        elif isinstance(outcome, KafkaError) and outcome.code == Error.INCONSISTENT_CLUSTER_ID:
            self._failed(outcome)
        elif isinstance(outcome, FATAL):
            self.stop()
            self._failed(outcome)
        elif isinstance(outcome, KafkaError | CorruptRecords | BrokenSnapshot | MalformedFrame):
            self._again(str(outcome))
        else:
            logger.error("the metadata is not followed, by a mistake of ours", exc_info=outcome)
            self.stop()
            self._failed(outcome)

    def _again(self, problem: str) -> None:
        """After a while; the first problem after an answer is told."""
        if not self._has_problem:
            logger.warning("the metadata cannot be read now: %s", problem)
        self._has_problem = True
        self._timer = self._env.clock.call_later(max(1, self._follower.backoff_ms), self._ask)

    # --- records ----------------------------------------------------------------------------------

    def _fetch_request(self) -> FetchRequest:
        follower, log = self._follower, self._log
        partition = FetchRequest.Partition(
            partition=0,
            current_leader_epoch=self._epoch,
            fetch_offset=log.end_offset,
            last_fetched_epoch=log.last_epoch,
            partition_max_bytes=follower.max_bytes,
            replica_directory_id=follower.directory_id,
            high_watermark=log.high_watermark,
        )
        return FetchRequest(
            cluster_id=follower.cluster_id,
            replica_id=follower.node_id,
            replica_state=FetchRequest.ReplicaState(replica_id=follower.node_id),
            max_wait_ms=MAX_WAIT_MS,
            max_bytes=follower.max_bytes,
            topics=[FetchRequest.Topic(topic_id=TOPIC_ID, partitions=[partition])],
        )

    def _take(self, answer: FetchResponse | FetchSnapshotResponse) -> Steps[None]:
        assert isinstance(answer, FetchResponse)
        if answer.error_code != Error.NONE:
            raise KafkaError(_known(answer.error_code))
        for each in (one for topic in answer.responses for one in topic.partitions):
            yield from self._take_partition(each)

    def _take_partition(self, answer: FetchResponse.Partition) -> Steps[None]:
        leader = answer.current_leader
        if leader.leader_epoch > self._epoch:
            self._epoch = leader.leader_epoch
        self.leader_id = max(self.leader_id, leader.leader_id)
        if answer.error_code == Error.FENCED_LEADER_EPOCH:
            return  # it is asked again in the epoch that it has told
        if answer.error_code != Error.NONE:
            raise KafkaError(_known(answer.error_code))
        diverging, snapshot = answer.diverging_epoch, answer.snapshot_id
        if snapshot.end_offset >= 0:
            self._snapshot = SnapshotId(snapshot.end_offset, snapshot.epoch)
            self._pieces = bytearray()
        elif diverging.end_offset >= 0:
            self._log.parts_at(diverging.epoch, diverging.end_offset)
        else:
            self._log.add(bytes(answer.records or b""))
            yield from self._log.commit(answer.high_watermark)

    # --- snapshots --------------------------------------------------------------------------------

    def _snapshot_request(self, snapshot: SnapshotId) -> FetchSnapshotRequest:
        asked = FetchSnapshotRequest
        named = asked.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
        partition = asked.Partition(
            partition=0,
            current_leader_epoch=self._epoch,
            snapshot_id=named,
            position=len(self._pieces),
            replica_directory_id=self._follower.directory_id,
        )
        return asked(
            cluster_id=self._follower.cluster_id,
            replica_id=self._follower.node_id,
            max_bytes=self._follower.max_snapshot_bytes,
            topics=[asked.Topic(name=TOPIC, partitions=[partition])],
        )

    def _take_piece(self, answer: FetchResponse | FetchSnapshotResponse) -> Steps[None]:
        assert isinstance(answer, FetchSnapshotResponse)
        snapshot = self._snapshot
        assert snapshot is not None
        try:
            if answer.error_code != Error.NONE:
                raise KafkaError(_known(answer.error_code))
            for each in (one for topic in answer.topics for one in topic.partitions):
                if each.error_code != Error.NONE:
                    raise KafkaError(_known(each.error_code))
                piece = bytes(each.unaligned_records or b"")
                if each.position != len(self._pieces) or not piece:
                    raise BrokenSnapshot(f"a piece of {snapshot.file_name} is missing")
                if each.size > MOST_SNAPSHOT_BYTES:
                    raise BrokenSnapshot(f"{snapshot.file_name} has {each.size} bytes")
                self._pieces += piece
                if len(self._pieces) == each.size:
                    pieces, self._snapshot, self._pieces = self._pieces, None, bytearray()
                    yield from self._log.begin_with(snapshot, bytes(pieces))
        except (KafkaError, BrokenSnapshot):
            self._snapshot = None  # the next fetch names one that is there
            raise


def _known(code: int) -> Error:
    """A newer controller may have errors that nobody here has heard of."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR
