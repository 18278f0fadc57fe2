"""The group coordinator as a whole: what it costs when nothing happens, and its time to commit."""

from __future__ import annotations

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.groups.events import DescribeGroups
from kafkalite.coordinators.groups.front import settings_of
from kafkalite.coordinators.groups.gathering import Gathering
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetCommitRequest, OffsetCommitResponse
from tests.unit.handlers.group_desk import Desk

GROUPS = 10_000
SWEEP_MS = 600_000
SWEEP_SLICES_MS = 100  # as long as it takes with so many groups


def commit(group_id: str) -> OffsetCommitRequest:
    partition = OffsetCommitRequest.Partition(partition_index=0, committed_offset=7)
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[OffsetCommitRequest.Topic(name="orders", partitions=[partition])],
    )


def code(answer: OffsetCommitResponse) -> int:
    return answer.topics[0].partitions[0].error_code


def test_idle_groups_wake_nobody() -> None:
    """All of them share the sweep of their shard; between two sweeps there is no timer."""
    desk = Desk()
    for number in range(GROUPS):
        assert code(desk.ask(commit(f"idle-{number}"), 9)) == Error.NONE
    ends = [partition.log.log_end_offset for partition in desk.partitions]
    assert sum(ends) == GROUPS
    for _ in range(3):
        due_ms = desk.clock.next_due_ms()
        assert due_ms is not None
        assert SWEEP_MS - SWEEP_SLICES_MS <= due_ms <= SWEEP_MS
        desk.clock.advance(due_ms)
        desk.clock.advance(SWEEP_SLICES_MS)
    assert [partition.log.log_end_offset for partition in desk.partitions] == ends


def test_asking_for_groups_that_never_were_leaves_nothing_behind() -> None:
    desk = Desk()
    for number in range(1_000):
        desk.groups.submit(f"never-{number}", DescribeGroups([f"never-{number}"], 5))
    assert desk.clock.next_due_ms() is None
    assert all(partition.log.log_end_offset == 0 for partition in desk.partitions)


def test_commit_that_is_not_replicated_in_time_fails() -> None:
    desk = Desk(offsets_commit_timeout_ms="700")
    for partition in desk.partitions:
        partition.is_lagging = True
    answer = desk.send(commit("late"), 9)
    desk.clock.advance(699)
    assert not answer.is_resolved
    desk.clock.advance(1)
    assert code(answer.value) == Error.COORDINATOR_NOT_AVAILABLE


def test_new_groups_gather_unless_somebody_has_set_their_delay() -> None:
    name = "group.initial.rebalance.delay.ms"
    assert settings_of(BrokerConfig()).gathering == Gathering()
    for delay in ("0", "3000"):
        settings = settings_of(BrokerConfig({name: delay}))
        assert settings.gathering is None
        assert settings.initial_rebalance_delay_ms == int(delay)
