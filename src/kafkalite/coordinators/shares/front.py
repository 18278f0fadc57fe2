"""The way into the share coordinator: from a group's partition to the shard that answers for it.

Owns the shards of `__share_group_state` on this broker, and answers the five requests that ask for
states, each about many partitions, whoever sends them. What nobody can answer is an error in its
place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.shards import Shards
from kafkalite.coordinators.shares import events
from kafkalite.coordinators.shares.batches import StateBatch
from kafkalite.coordinators.shares.records import ShareKey, ShareState
from kafkalite.coordinators.shares.shard import Settings, ShareShard
from kafkalite.env import Env
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, in_steps
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


StateRequest: TypeAlias = (
    InitializeShareGroupStateRequest | ReadShareGroupStateRequest | WriteShareGroupStateRequest
    | DeleteShareGroupStateRequest | ReadShareGroupStateSummaryRequest
)  # fmt: skip
StateResponse: TypeAlias = (
    InitializeShareGroupStateResponse | ReadShareGroupStateResponse | WriteShareGroupStateResponse
    | DeleteShareGroupStateResponse | ReadShareGroupStateSummaryResponse
)  # fmt: skip
# What each says of one partition.
Entry: TypeAlias = (
    InitializeShareGroupStateRequest.Partition | ReadShareGroupStateRequest.Partition
    | WriteShareGroupStateRequest.Partition | DeleteShareGroupStateRequest.Partition
    | ReadShareGroupStateSummaryRequest.Partition
)  # fmt: skip
Told: TypeAlias = (
    InitializeShareGroupStateResponse.Partition | ReadShareGroupStateResponse.Partition
    | WriteShareGroupStateResponse.Partition | DeleteShareGroupStateResponse.Partition
    | ReadShareGroupStateSummaryResponse.Partition
)  # fmt: skip
_Asked: TypeAlias = tuple[bytes, Entry, Later[object]]


@dataclass(slots=True, frozen=True)
class _Kind:
    """How one of the requests is answered."""

    response: type[Any]
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

    def answer(self, request: StateRequest) -> Later[StateResponse]:
        """The response to one of the five requests. Of nobody, or with a topic that names no
        partition, nothing is asked; to begin with the partitions of other topics all the same."""
        kind = KINDS[type(request)]
        is_to_begin = isinstance(request, InitializeShareGroupStateRequest)
        is_empty = not is_to_begin and any(not topic.partitions for topic in request.topics)
        if not request.group_id or is_empty:
            return Later.of(kind.response())
        asking = in_steps(
            (topic.topic_id, entry, self._ask(request.group_id, topic.topic_id, entry))
            for topic in request.topics
            for entry in topic.partitions
        )
        soon = self.env.slices.soon
        return soon(asking).then_ask(
            lambda asked: Later.all([each[2] for each in asked]).then_ask(
                lambda _: soon(_told(kind, asked))
            )
        )

    def on_topics_deleted(self, topic_ids: frozenset[bytes]) -> None:
        self.submit_all(lambda: events.TopicsDeleted(topic_ids))

    def _ask(self, group_id: str, topic_id: bytes, entry: Entry) -> Later[object]:
        key = ShareKey(group_id, bytes(topic_id), entry.partition)
        return self.submit(name_of(key), _event(key, entry))

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


def _told(kind: _Kind, asked: list[_Asked]) -> Steps[StateResponse]:
    """Each partition once: of one that was named more than once, what was answered last."""
    results: dict[bytes, dict[int, Told]] = {}
    for number, (topic_id, entry, later) in enumerate(asked, 1):
        told: Told = kind.response.Partition(partition=entry.partition)
        answer = later.value
        if isinstance(answer, KafkaError):
            _refuse(told, answer, kind.failed)
        elif isinstance(answer, ShareState):
            _fill(told, answer)
        results.setdefault(topic_id, {})[entry.partition] = told
        if number % ELEMENTS_PER_STEP == 0:
            yield
    response: StateResponse = kind.response(
        results=[
            kind.response.Result(topic_id=topic_id, partitions=list(partitions.values()))
            for topic_id, partitions in results.items()
        ]
    )
    return response


def _refuse(told: Told, error: KafkaError, failed: str) -> None:
    told.error_code, told.error_message = error.code, error.message
    if error.code not in _OWN:
        why = Error(error.code).message if error.message is None else error.message
        told.error_message = f"Unable to {failed} share group state: {why}"


# --- the five requests ----------------------------------------------------------------------------


def _event(key: ShareKey, entry: Entry) -> Event[object]:
    """What a request asks of a shard."""
    if isinstance(entry, InitializeShareGroupStateRequest.Partition):
        return events.Initialize(key, entry.state_epoch, entry.start_offset)
    if isinstance(entry, ReadShareGroupStateRequest.Partition):
        return events.Read(key, entry.leader_epoch)
    if isinstance(entry, WriteShareGroupStateRequest.Partition):
        return events.Write(
            key, entry.state_epoch, entry.leader_epoch, entry.start_offset,
            entry.delivery_complete_count, tuple(batches_of(entry.state_batches)),
        )  # fmt: skip
    if isinstance(entry, DeleteShareGroupStateRequest.Partition):
        return events.Delete(key)
    return events.Summarize(key)


def batches_of(
    told: Iterable[WriteShareGroupStateRequest.StateBatch | ReadShareGroupStateResponse.StateBatch],
) -> Iterator[StateBatch]:
    for one in told:
        yield StateBatch(
            one.first_offset, one.last_offset, one.delivery_state, one.delivery_count
        )


def _fill(told: Told, state: ShareState) -> None:
    """What was asked for of a state."""
    if isinstance(told, ReadShareGroupStateResponse.Partition):
        told.state_epoch, told.start_offset = state.state_epoch, state.start_offset
        told.state_batches = [
            ReadShareGroupStateResponse.StateBatch(
                first_offset=one.first, last_offset=one.last, delivery_state=one.state,
                delivery_count=one.deliveries,
            )
            for one in state.batches
        ]  # fmt: skip
    elif isinstance(told, ReadShareGroupStateSummaryResponse.Partition):
        told.state_epoch, told.leader_epoch = state.state_epoch, state.leader_epoch
        told.start_offset, told.delivery_complete_count = state.start_offset, state.complete_count


KINDS: dict[type[StateRequest], _Kind] = {
    InitializeShareGroupStateRequest: _Kind(InitializeShareGroupStateResponse, "initialize"),
    ReadShareGroupStateRequest: _Kind(ReadShareGroupStateResponse, "read"),
    WriteShareGroupStateRequest: _Kind(WriteShareGroupStateResponse, "write"),
    DeleteShareGroupStateRequest: _Kind(DeleteShareGroupStateResponse, "delete"),
    ReadShareGroupStateSummaryRequest: _Kind(
        ReadShareGroupStateSummaryResponse, "read the summary of"
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
