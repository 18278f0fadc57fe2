"""The way into the share coordinator: from a group's partition to the shard that answers for it.

Owns the shards of `__share_group_state` on this broker, and answers the five requests that ask for
states, each about many partitions, whoever sends them. What nobody can answer is an error in its
place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.shards import Shards
from kafkalite.coordinators.shares import events
from kafkalite.coordinators.shares.batches import StateBatch
from kafkalite.coordinators.shares.records import ShareKey, ShareState
from kafkalite.coordinators.shares.shard import Settings, ShareShard
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.log.names import uuid_text
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

STATE_TOPIC = "__share_group_state"
# Of the shard, which says why; others are of whoever should have answered.
_OWN = (
    Error.INVALID_REQUEST, Error.FENCED_LEADER_EPOCH, Error.FENCED_STATE_EPOCH,
    Error.UNKNOWN_TOPIC_OR_PARTITION,
)  # fmt: skip

log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class _Kind:
    """What one of the requests asks of a shard, and how its answer is told."""

    response: type[Any]
    event: Callable[[ShareKey, Any], Event[Any]]
    fill: Callable[[Any, Any], None]
    failed: str


class Shares(Shards):
    """The share coordinator of one broker."""

    def __init__(
        self,
        env: Env,
        settings: Settings,
        partition_count: Callable[[], int],
        *,
        append_timeout_ms: int,
    ) -> None:
        super().__init__(
            env, STATE_TOPIC, partition_count, lambda: ShareShard(settings),
            deliver=self._deliver, append_timeout_ms=append_timeout_ms,
        )  # fmt: skip

    def answer(self, request: Any) -> Later[Any]:
        """The response to one of the five requests. Of nobody, or with a topic that names no
        partition, nothing is asked."""
        kind = KINDS[type(request)]
        if not request.group_id or any(not topic.partitions for topic in request.topics):
            return Later.of(kind.response())
        asked = [
            (topic.topic_id, entry, self._ask(kind, request.group_id, topic.topic_id, entry))
            for topic in request.topics
            for entry in topic.partitions
        ]
        return Later.all([later for _, _, later in asked]).map(lambda _: _told(kind, asked))

    def on_topics_deleted(self, topic_ids: frozenset[bytes]) -> None:
        self.submit_all(lambda: events.TopicsDeleted(topic_ids))

    def _ask(self, kind: _Kind, group_id: str, topic_id: bytes, entry: Any) -> Later[Any]:
        key = ShareKey(group_id, bytes(topic_id), entry.partition)
        return self.submit(name_of(key), kind.event(key, entry))

    def _deliver(self, index: int, sent: object) -> None:
        assert isinstance(sent, events.Prune), sent
        runtime = self.runtimes.get(index)
        if runtime is not None:
            try:
                runtime.partition.delete_records_before(sent.offset)
            except KafkaError as error:
                log.warning("%s-%d is not pruned: %s", STATE_TOPIC, index, error)


def name_of(key: ShareKey) -> str:
    """By which the shard is found."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


def _told(kind: _Kind, asked: list[tuple[bytes, Any, Later[Any]]]) -> Any:
    results: dict[bytes, Any] = {}
    for topic_id, entry, later in asked:
        result = results.setdefault(topic_id, kind.response.Result(topic_id=topic_id))
        told = kind.response.Partition(partition=entry.partition)
        answer = later.value
        if isinstance(answer, KafkaError):
            told.error_code = answer.code
            told.error_message = answer.message
            if answer.code not in _OWN:
                why = Error(answer.code).message if answer.message is None else answer.message
                told.error_message = f"Unable to {kind.failed} share group state: {why}"
        else:
            kind.fill(told, answer)
        result.partitions.append(told)
    return kind.response(results=list(results.values()))


# --- the five requests ----------------------------------------------------------------------------


def _initialize(key: ShareKey, entry: InitializeShareGroupStateRequest.Partition) -> Event[Any]:
    return events.Initialize(key, entry.state_epoch, entry.start_offset)


def _read(key: ShareKey, entry: ReadShareGroupStateRequest.Partition) -> Event[Any]:
    return events.Read(key, entry.leader_epoch)


def _write(key: ShareKey, entry: WriteShareGroupStateRequest.Partition) -> Event[Any]:
    return events.Write(
        key, entry.state_epoch, entry.leader_epoch, entry.start_offset,
        entry.delivery_complete_count, tuple(batches_of(entry.state_batches)),
    )  # fmt: skip


def batches_of(told: list[Any]) -> Iterator[StateBatch]:
    for one in told:
        yield StateBatch(
            one.first_offset, one.last_offset, one.delivery_state, one.delivery_count
        )


def _delete(key: ShareKey, entry: DeleteShareGroupStateRequest.Partition) -> Event[Any]:
    return events.Delete(key)


def _summarize(key: ShareKey, entry: ReadShareGroupStateSummaryRequest.Partition) -> Event[Any]:
    return events.Summarize(key)


def _nothing(told: Any, answer: None) -> None:
    """There is nothing to tell."""


def _state(told: ReadShareGroupStateResponse.Partition, answer: ShareState) -> None:
    told.state_epoch, told.start_offset = answer.state_epoch, answer.start_offset
    told.state_batches = [
        ReadShareGroupStateResponse.StateBatch(
            first_offset=one.first, last_offset=one.last, delivery_state=one.state,
            delivery_count=one.deliveries,
        )
        for one in answer.batches
    ]  # fmt: skip


def _summary(told: ReadShareGroupStateSummaryResponse.Partition, answer: ShareState) -> None:
    told.state_epoch, told.leader_epoch = answer.state_epoch, answer.leader_epoch
    told.start_offset, told.delivery_complete_count = answer.start_offset, answer.complete_count


KINDS: dict[type[Any], _Kind] = {
    InitializeShareGroupStateRequest: _Kind(
        InitializeShareGroupStateResponse, _initialize, _nothing, "initialize"
    ),
    ReadShareGroupStateRequest: _Kind(ReadShareGroupStateResponse, _read, _state, "read"),
    WriteShareGroupStateRequest: _Kind(WriteShareGroupStateResponse, _write, _nothing, "write"),
    DeleteShareGroupStateRequest: _Kind(DeleteShareGroupStateResponse, _delete, _nothing, "delete"),
    ReadShareGroupStateSummaryRequest: _Kind(
        ReadShareGroupStateSummaryResponse, _summarize, _summary, "read the summary of"
    ),
}


def share_settings(config: BrokerConfig, partition_count: Callable[[bytes], int]) -> Settings:
    """The broker's configuration, as the share coordinator reads it."""
    return Settings(
        config.get_int("share.coordinator.snapshot.update.records.per.snapshot"),
        config.get_int("share.coordinator.state.topic.prune.interval.ms"),
        config.get_int("share.coordinator.cold.partition.snapshot.interval.ms"),
        partition_count,
    )
