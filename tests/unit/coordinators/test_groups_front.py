"""The group coordinator as a whole: what it costs when nothing happens, and its time to commit."""

from __future__ import annotations

from kafkalite.coordinators.groups.events import DescribeGroups
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetCommitRequest, OffsetCommitResponse
from tests.unit.handlers.group_desk import Desk

GROUPS = 10_000
SWEEP_MS = 600_000


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
        assert desk.clock.next_due_ms() == SWEEP_MS
        desk.clock.advance(SWEEP_MS)
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
