"""What is to go goes, whatever the log's limit, the length of ids and the number of offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kafkalite.coordinators.asked import State
from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.groups import events
from kafkalite.coordinators.groups.housekeeping import TOMBSTONE_WORK
from kafkalite.coordinators.groups.settings import GroupSettings
from kafkalite.coordinators.groups.shard import GroupShard
from kafkalite.coordinators.groups.state import STRETCH_WORK, GroupsState
from kafkalite.coordinators.groups.topics import TopicView
from kafkalite.coordinators.runtime import Runtime
from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import STRETCH_MS
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from tests.unit.coordinators.fakes import FakePartition
from tests.unit.coordinators.stage import StageTopics

HOUR_MS = 3_600_000
RETENTION_MS = 3 * HOUR_MS
NO_OFFSET = -1
OLD_ID, NEW_ID = bytes([1] * 16), bytes([2] * 16)


@dataclass
class House:
    """A shard with offsets in it, on a log with a limit."""

    partition: FakePartition = field(default_factory=FakePartition)
    topics: StageTopics = field(default_factory=StageTopics)

    def __post_init__(self) -> None:
        self.env = manual_env()
        assert isinstance(self.env.clock, ManualClock)
        self.clock = self.env.clock
        self.settings = GroupSettings(offsets_retention_ms=RETENTION_MS)
        self.runtime = Runtime(self.env, self.partition, self._make_shard)
        self.runtime.load()
        self.limit(100 << 20)  # while offsets are committed

    def _make_shard(self) -> GroupShard:
        return GroupShard(GroupsState(self.settings, self.topics, self.env.random))

    @property
    def state(self) -> GroupsState:
        assert isinstance(self.runtime.shard, GroupShard)
        return self.runtime.shard.state

    def limit(self, max_bytes: int) -> None:
        self.partition.log.config.max_message_bytes = max_bytes

    def make_topic(self, name: str, topic_id: bytes) -> None:
        self.topics.views[name] = TopicView(name, topic_id, 1)

    def delete_topic(self, name: str) -> None:
        topic_id = self.topics.views.pop(name).topic_id
        self.runtime.submit(events.TopicsDeleted([(name, topic_id)]))

    def commit(self, group_id: str, topic: str, partitions: int) -> None:
        topic_id = self.topics.views[topic].topic_id
        asked = [
            OffsetCommitRequest.Partition(partition_index=index, committed_offset=7)
            for index in range(partitions)
        ]
        request = OffsetCommitRequest(
            group_id=group_id,
            topics=[OffsetCommitRequest.Topic(name=topic, topic_id=topic_id, partitions=asked)],
        )
        answer = self.ask(events.CommitOffsets(request, 9))
        assert answer.topics[0].partitions[0].error_code == Error.NONE

    def read(self, group_id: str, topic: str) -> int:
        place = OffsetFetchRequest.GroupTopic(name=topic, partition_indexes=[0])
        request = OffsetFetchRequest.Group(group_id=group_id, topics=[place])
        answer = self.ask(events.FetchOffsets(request, False))
        offset: int = answer.topics[0].partitions[0].committed_offset
        return offset

    def ask(self, event: Any) -> Any:
        later = self.runtime.submit(event)
        while not later.is_resolved:
            self.clock.advance(STRETCH_MS)
        return later.value

    def restart(self) -> None:
        self.runtime.unload()
        self.runtime.load()
        while self.runtime.state is State.LOADING:
            self.clock.advance(0)

    def count(self) -> int:
        return sum(self.state.offsets.count(group_id) for group_id in self.state.offsets.committed)


limits = st.sampled_from([0, 61, 100, 300, 1_000, 1_400, 50_000, 1_048_588])
id_lengths = st.lists(st.integers(1, 1_500), min_size=1, max_size=4)
partition_counts = st.sampled_from([1, 7, 200, 900])
calmly = settings(
    max_examples=20, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
)


@calmly
@given(limit=limits, lengths=id_lengths, partitions=partition_counts, cut=st.booleans())
def test_no_offset_of_a_deleted_topic_is_left_or_found_under_the_next_topic_of_its_name(
    limit: int, lengths: list[int], partitions: int, cut: bool
) -> None:
    house = House()
    house.make_topic("gone", OLD_ID)
    house.make_topic("kept", b"k" * 16)
    group_ids = [str(number) * length for number, length in enumerate(lengths)]
    for group_id in group_ids:
        house.commit(group_id, "gone", partitions)
        house.commit(group_id, "kept", 2)
    house.limit(limit)
    house.delete_topic("gone")
    house.make_topic("gone", NEW_ID)
    if cut:
        house.restart()  # in the middle of it, if it takes more than one turn
    assert [house.read(group_id, "gone") for group_id in group_ids] == [NO_OFFSET] * len(lengths)
    assert [house.read(group_id, "kept") for group_id in group_ids] == [7] * len(lengths)
    house.clock.advance(HOUR_MS)
    assert house.count() == 2 * len(group_ids)
    house.restart()
    assert house.count() == 2 * len(group_ids)


@calmly
@given(limit=limits, lengths=id_lengths, partitions=partition_counts, cut=st.booleans())
def test_no_expired_offset_and_no_deserted_group_is_left(
    limit: int, lengths: list[int], partitions: int, cut: bool
) -> None:
    house = House()
    house.make_topic("orders", OLD_ID)
    for number, length in enumerate(lengths):
        house.commit(str(number) * length, "orders", partitions)
    house.limit(limit)
    if cut:
        house.clock.advance(RETENTION_MS // 2)
        house.restart()
    house.clock.advance(RETENTION_MS + HOUR_MS)
    assert house.count() == 0
    assert house.state.groups == {}
    house.restart()
    assert house.state.groups == {}
    assert house.clock.next_due_ms() is None


@calmly
@given(limit=limits, lengths=id_lengths, partitions=partition_counts)
def test_groups_are_deleted_whole(limit: int, lengths: list[int], partitions: int) -> None:
    house = House()
    house.make_topic("orders", OLD_ID)
    group_ids = [str(number) * length for number, length in enumerate(lengths)]
    for group_id in group_ids:
        house.commit(group_id, "orders", partitions)
    house.limit(limit)
    results = house.ask(events.DeleteGroups(group_ids))
    assert [result.error_code for result in results] == [Error.NONE] * len(group_ids)
    house.restart()
    assert house.state.groups == {}
    assert house.count() == 0


def test_a_commit_for_the_new_topic_stays_while_the_old_ones_offsets_go() -> None:
    house = House()
    house.make_topic("orders", OLD_ID)
    house.commit("readers", "orders", 10_000)
    house.delete_topic("orders")
    assert house.count() > 0, "it takes more than one turn"
    house.make_topic("orders", NEW_ID)
    house.commit("readers", "orders", 1)
    house.clock.advance(HOUR_MS)
    assert house.count() == 1
    assert house.read("readers", "orders") == 7


def test_a_deletion_that_could_not_be_written_is_tried_again() -> None:
    house = House()
    house.make_topic("orders", OLD_ID)
    house.commit("readers", "orders", 3_000)
    house.partition.failures = [None, None, KafkaError(Error.NOT_ENOUGH_REPLICAS)]
    house.delete_topic("orders")
    house.clock.advance(1_000)
    assert house.count() == 0


@pytest.mark.parametrize("act", ["sweep", "delete topic", "delete group"])
def test_however_many_offsets_go_no_turn_is_long(act: str) -> None:
    house = House()
    house.make_topic("orders", OLD_ID)
    house.commit("readers", "orders", 20_000)
    if act == "sweep":
        house.clock.advance(RETENTION_MS - HOUR_MS)
        while house.count() == 20_000:
            house.clock.advance(house.clock.next_due_ms() or 0)
    elif act == "delete topic":
        house.delete_topic("orders")
    else:
        house.runtime.submit(events.DeleteGroups(["readers"]))
    longest, remaining = 0, 20_000
    while True:
        longest, remaining = max(longest, remaining - house.count()), house.count()
        if remaining == 0:
            break
        house.clock.advance(1)
    assert 0 < longest <= STRETCH_WORK // TOMBSTONE_WORK + 1


def test_a_sweep_lets_others_in_between_its_slices() -> None:
    house = House()
    house.make_topic("orders", OLD_ID)
    house.commit("readers", "orders", 5_000)
    house.clock.advance(RETENTION_MS - HOUR_MS)
    while house.count() == 5_000:
        house.clock.advance(house.clock.next_due_ms() or 0)
    assert 0 < house.count() < 5_000
    later = house.runtime.submit(events.DescribeGroups(["readers"], 5))
    assert later.is_resolved


def test_an_offset_of_a_transaction_is_of_the_topic_it_was_committed_for() -> None:
    """Whatever became of the deletion."""
    house = House()
    house.make_topic("orders", OLD_ID)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="readers",
        producer_id=1,
        topics=[
            TxnOffsetCommitRequest.Topic(
                name="orders",
                partitions=[
                    TxnOffsetCommitRequest.Partition(partition_index=0, committed_offset=7)
                ],
            )
        ],
    )
    house.ask(events.CommitTransactionalOffsets(request, 3))
    house.runtime.end_transaction(Producer(1, 0), 0, True)
    assert house.read("readers", "orders") == 7
    house.make_topic("orders", NEW_ID)
    assert house.read("readers", "orders") == NO_OFFSET
