"""OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete, for groups of every kind.

Owns who may commit what and what a reader sees. The offsets themselves are `OffsetStore`'s.
A commit is refused as a whole when its member is, and per partition when its metadata is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from functools import partial
from typing import Protocol

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.groups import records
from kafkalite.coordinators.groups.classic_group import ClassicState
from kafkalite.coordinators.groups.classic_timers import arm_session
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup, check_owned
from kafkalite.coordinators.groups.events import (
    CommitOffsets,
    CommitTransactionalOffsets,
    DeleteOffsets,
    FetchOffsets,
)
from kafkalite.coordinators.groups.offsets import NO_TIMESTAMP, CommittedOffset, OffsetStore
from kafkalite.coordinators.groups.other_kinds import ForeignGroup
from kafkalite.coordinators.groups.share_group import ShareGroup
from kafkalite.coordinators.groups.state import Group, GroupsState
from kafkalite.coordinators.groups.streams_group import StreamsGroup
from kafkalite.coordinators.groups.topics import Topics
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import InSteps, Steps, finish
from kafkalite.protocol.classes import ZERO_UUID
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    TxnOffsetCommitResponse,
)

# From this version on a commit to a group that does not exist says so.
GROUP_ID_NOT_FOUND_SINCE = 9
DEFAULT_RETENTION = -1
NO_OFFSET = -1
FETCHED_AT_ONCE = 500
FETCHED_PER_STEP = 50
CHANGED_AT_ONCE = 200
CHANGED_PER_STEP = 8


class _AskedTopic(Protocol):
    """Of a request."""

    @property
    def partitions(self) -> Sized: ...


# Raises when the committing member does not own the partition, of a topic by name and id.
PartitionCheck = Callable[[str, bytes, int], None]


def commit_offsets(state: GroupsState, turn: Turn, event: CommitOffsets) -> Steps[None] | None:
    check = _check_commit(state, turn, event)
    return _at_once(_commit_all(state, turn, event, check), event.request.topics)


def _at_once(steps: Steps[None], topics: Sequence[_AskedTopic]) -> Steps[None] | None:
    """Does it, unless too much was asked for."""
    asked = 0
    for topic in topics:
        asked += len(topic.partitions)
    return steps if asked > CHANGED_AT_ONCE else finish(steps)


def _commit_all(
    state: GroupsState, turn: Turn, event: CommitOffsets, check: PartitionCheck
) -> Steps[None]:
    request = event.request
    expire_ms = NO_TIMESTAMP
    if request.retention_time_ms != DEFAULT_RETENTION:
        expire_ms = turn.now_ms + request.retention_time_ms
    response, count = OffsetCommitResponse(), 0
    for topic in request.topics:
        answer = OffsetCommitResponse.Topic(name=topic.name, topic_id=topic.topic_id)
        response.topics.append(answer)
        for asked in topic.partitions:
            index = asked.partition_index
            offset = CommittedOffset(
                asked.committed_offset,
                asked.committed_leader_epoch,
                asked.committed_metadata or "",
                # Version 1 alone could say when the commit happened.
                asked.commit_timestamp if asked.commit_timestamp >= 0 else turn.now_ms,
                expire_ms,
                topic.topic_id,
            )
            check(topic.name, topic.topic_id, index)
            code = _commit_one(state, turn, request.group_id, topic.name, index, offset)
            answer.partitions.append(
                OffsetCommitResponse.Partition(partition_index=index, error_code=code)
            )
            count += 1
            if count % CHANGED_PER_STEP == 0:
                yield
    turn.reply(response)


def _check_commit(state: GroupsState, turn: Turn, event: CommitOffsets) -> PartitionCheck:
    request = event.request
    epoch = request.generation_id_or_member_epoch
    group = state.groups.get(request.group_id)
    if group is None:
        if epoch < 0:  # from outside any group: a tool, Spark, a plain reader
            state.create_classic_group(request.group_id, turn.now_ms)
            return _any_partition
        is_new_client = event.version >= GROUP_ID_NOT_FOUND_SINCE
        raise KafkaError(Error.GROUP_ID_NOT_FOUND if is_new_client else Error.ILLEGAL_GENERATION)
    instance_id = request.group_instance_id
    if isinstance(group, (ConsumerGroup, StreamsGroup)):
        return _check_epoch(
            group, request.member_id, instance_id, epoch, event.version, is_transactional=False
        )
    group.check_commit(request.member_id, instance_id, epoch, is_transactional=False)
    if isinstance(group, (ForeignGroup, ShareGroup)):
        return _any_partition
    member = group.members.get(request.member_id)
    is_rebalanced = group.state in (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)
    if member is not None and is_rebalanced:
        arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)
    return _any_partition


def _check_epoch(
    group: ConsumerGroup | StreamsGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    version: int,
    *,
    is_transactional: bool,
) -> PartitionCheck:
    """With an older epoch each partition must have been the member's then."""
    if isinstance(group, StreamsGroup):
        running = group.check_commit(
            member_id, instance_id, epoch, version, is_transactional=is_transactional
        )
        if running is None:
            return _any_partition
        return lambda topic, _, index: group.check_owned(running, epoch, topic, index)
    stale = group.check_commit(
        member_id, instance_id, epoch, version, is_transactional=is_transactional
    )
    if stale is None:
        return _any_partition
    return lambda _, topic_id, index: check_owned(stale, epoch, topic_id, index)


def _any_partition(topic: str, topic_id: bytes, partition: int) -> None:
    """No partition is refused."""


def _commit_one(
    state: GroupsState,
    turn: Turn,
    group_id: str,
    topic: str,
    partition: int,
    offset: CommittedOffset,
) -> int:
    if utf16_length(offset.metadata) > state.settings.offset_metadata_max_bytes:
        return Error.OFFSET_METADATA_TOO_LARGE
    turn.write(records.offset_commit(group_id, topic, partition, offset))
    return Error.NONE


def utf16_length(text: str) -> int:
    """Apache Kafka measures metadata in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


# -- transactions ----------------------------------------------------------------------------


def commit_transactional(
    state: GroupsState, turn: Turn, event: CommitTransactionalOffsets
) -> Steps[None] | None:
    """Stores offsets that count once the producer's transaction is committed."""
    check = _check_transactional(state, event, turn.now_ms)
    return _at_once(_commit_all_transactional(state, turn, event, check), event.request.topics)


def _commit_all_transactional(
    state: GroupsState, turn: Turn, event: CommitTransactionalOffsets, check: PartitionCheck
) -> Steps[None]:
    request = event.request
    response, count = TxnOffsetCommitResponse(), 0
    for topic in request.topics:
        answer = TxnOffsetCommitResponse.Topic(name=topic.name)
        response.topics.append(answer)
        view = state.topics.by_name(topic.name)
        topic_id = ZERO_UUID if view is None else view.topic_id
        for asked in topic.partitions:
            index = asked.partition_index
            check(topic.name, topic_id, index)
            offset = CommittedOffset(
                asked.committed_offset,
                asked.committed_leader_epoch,
                asked.committed_metadata or "",
                turn.now_ms,
                NO_TIMESTAMP,
                topic_id,
            )
            code = _commit_one(state, turn, request.group_id, topic.name, index, offset)
            answer.partitions.append(
                TxnOffsetCommitResponse.Partition(partition_index=index, error_code=code)
            )
            count += 1
            if count % CHANGED_PER_STEP == 0:
                yield
    turn.effects.producer = Producer(request.producer_id, request.producer_epoch)
    turn.reply(response)


def _check_transactional(
    state: GroupsState, event: CommitTransactionalOffsets, now_ms: int
) -> PartitionCheck:
    request = event.request
    group = state.groups.get(request.group_id)
    member_id, instance_id = request.member_id, request.group_instance_id
    if group is None:
        if request.generation_id >= 0:
            raise KafkaError(Error.ILLEGAL_GENERATION)
        state.create_classic_group(request.group_id, now_ms)
        return _any_partition
    epoch = request.generation_id
    if not isinstance(group, (ConsumerGroup, StreamsGroup)):
        group.check_commit(member_id, instance_id, epoch, is_transactional=True)
        return _any_partition
    try:
        check = _check_epoch(
            group, member_id, instance_id, epoch, event.version, is_transactional=True
        )
    except KafkaError as refusal:
        raise _as_generation(refusal) from None
    return check if check is _any_partition else partial(_check_generation, check)


def _check_generation(check: PartitionCheck, topic: str, topic_id: bytes, index: int) -> None:
    try:
        check(topic, topic_id, index)
    except KafkaError as refusal:
        raise _as_generation(refusal) from None


def _as_generation(refusal: KafkaError) -> KafkaError:
    """Producers know nothing of member epochs: a stale one reads as an old generation."""
    is_stale = refusal.code == Error.STALE_MEMBER_EPOCH
    return KafkaError(Error.ILLEGAL_GENERATION) if is_stale else refusal


# -- reading ---------------------------------------------------------------------------------


def fetch_offsets(state: GroupsState, turn: Turn, event: FetchOffsets) -> None:
    request = event.request
    group = state.groups.get(request.group_id)
    if isinstance(group, (ConsumerGroup, ForeignGroup, StreamsGroup)):
        group.check_fetch(request.member_id, request.member_epoch)
    if request.topics is None:
        topics = [
            (topic, ZERO_UUID, list(partitions))
            for topic, partitions in state.offsets.of_group(request.group_id).items()
        ]
    else:
        topics = [(topic.name, topic.topic_id, topic.partition_indexes) for topic in request.topics]
    if sum(len(indexes) for _, _, indexes in topics) + len(topics) <= FETCHED_AT_ONCE:
        turn.reply(finish(_fetch_all(state.offsets, state.topics, event, topics)))
    else:  # all of them as they are now, whatever is committed meanwhile
        offsets = state.offsets.as_it_is(request.group_id)
        turn.reply(InSteps(_fetch_all(offsets, state.topics, event, topics)))


def _fetch_all(
    offsets: OffsetStore,
    known: Topics,
    event: FetchOffsets,
    topics: list[tuple[str, bytes, list[int]]],
) -> Steps[OffsetFetchResponse.Group]:
    group = OffsetFetchResponse.Group(group_id=event.request.group_id)
    fetched = 0
    for name, topic_id, indexes in topics:
        actual_id = topic_id if topic_id != ZERO_UUID else known.id_of(name) or ZERO_UUID
        answer = OffsetFetchResponse.GroupTopic(name=name, topic_id=topic_id)
        group.topics.append(answer)
        for index in indexes or (None,):
            if index is not None:
                answer.partitions.append(_fetch_one(offsets, event, name, actual_id, index))
            fetched += 1
            if fetched % FETCHED_PER_STEP == 0:
                yield
    return group


def _fetch_one(
    offsets: OffsetStore, event: FetchOffsets, topic: str, topic_id: bytes, partition: int
) -> OffsetFetchResponse.GroupTopicPartition:
    group_id = event.request.group_id
    answer = OffsetFetchResponse.GroupTopicPartition(
        partition_index=partition, committed_offset=NO_OFFSET, metadata=""
    )
    if event.require_stable and offsets.is_unstable(group_id, topic, partition):
        answer.error_code = Error.UNSTABLE_OFFSET_COMMIT
        return answer
    offset = offsets.get(group_id, topic, partition)
    if offset is None or _is_of_other_topic(offset.topic_id, topic_id):
        return answer
    answer.committed_offset = offset.offset
    answer.committed_leader_epoch = offset.leader_epoch
    answer.metadata = offset.metadata
    return answer


def _is_of_other_topic(stored: bytes, asked: bytes) -> bool:
    """The topic was deleted and made again since; without both ids nobody can tell."""
    return ZERO_UUID not in (stored, asked) and stored != asked


# -- deleting --------------------------------------------------------------------------------


def delete_offsets(state: GroupsState, turn: Turn, event: DeleteOffsets) -> Steps[None] | None:
    group = state.groups.get(event.request.group_id)
    if group is None:
        raise KafkaError(Error.GROUP_ID_NOT_FOUND)
    group.check_offset_delete()
    return _at_once(_delete_all(state, turn, event, group), event.request.topics)


def _delete_all(
    state: GroupsState, turn: Turn, event: DeleteOffsets, group: Group
) -> Steps[None]:
    request = event.request
    response, count = OffsetDeleteResponse(), 0
    for topic in request.topics:
        answer = OffsetDeleteResponse.Topic(name=topic.name)
        response.topics.append(answer)
        is_subscribed = group.is_subscribed_to(topic.name)
        for asked in topic.partitions:
            index = asked.partition_index
            code = Error.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else Error.NONE
            answer.partitions.append(
                OffsetDeleteResponse.Partition(partition_index=index, error_code=code)
            )
            if not is_subscribed and _has_offset(state, group, topic.name, index):
                turn.write(records.offset_tombstone(group.group_id, topic.name, index))
            count += 1
            if count % CHANGED_PER_STEP == 0:
                yield
    turn.effects.atomic = False
    turn.reply(response)


def _has_offset(state: GroupsState, group: Group, topic: str, partition: int) -> bool:
    store, group_id = state.offsets, group.group_id
    if store.get(group_id, topic, partition) is not None:
        return True
    return store.is_unstable(group_id, topic, partition)
