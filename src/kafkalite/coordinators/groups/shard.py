"""The group coordinator of one partition of __consumer_offsets, as a deterministic shard.

Owns the dispatch from events to decisions. It holds no logic of its own: joins, syncs, offsets
and housekeeping each have their module. Invariant: state is the fold of the log, plus who waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalite.coordinators.effects import Effects, Failed, Producer, Record
from kafkalite.coordinators.events import Event
from kafkalite.coordinators.groups import (
    admin,
    classic_join,
    classic_members,
    classic_sync,
    consumer_heartbeat,
    consumer_leave,
    events,
    housekeeping,
    offset_requests,
    other_kinds,
    replaying,
    requests,
    share_heartbeat,
    share_states,
    streams_heartbeat,
    streams_target,
    subscriptions,
)
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.classic_timers import arm_session
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from kafkalite.coordinators.groups.share_group import ShareGroup
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.streams_group import StreamsGroup
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.protocol.errors import KafkaError

# Steps come of what takes long.
_DECIDE: dict[type, Callable[[GroupsState, Turn, Any], Steps[None] | None]] = {
    events.Join: requests.join,
    events.Sync: requests.sync,
    events.Heartbeat: requests.heartbeat,
    events.Leave: requests.leave,
    events.ConsumerHeartbeat: consumer_heartbeat.consumer_heartbeat,
    events.CommitOffsets: offset_requests.commit_offsets,
    events.CommitTransactionalOffsets: offset_requests.commit_transactional,
    events.FetchOffsets: offset_requests.fetch_offsets,
    events.DeleteOffsets: offset_requests.delete_offsets,
    events.ListGroups: admin.list_groups,
    events.DescribeGroups: admin.describe_groups,
    events.DescribeConsumerGroups: admin.describe_consumer_groups,
    events.ShareHeartbeat: share_heartbeat.share_heartbeat,
    events.DescribeShareGroups: admin.describe_share_groups,
    events.StreamsHeartbeat: streams_heartbeat.streams_heartbeat,
    events.DescribeStreamsGroups: admin.describe_streams_groups,
    events.StreamsDelayOver: streams_target.on_delay_over,
    events.SharesInitialized: share_states.on_initialized,
    events.SharesNotInitialized: share_states.on_not_initialized,
    events.ListShared: share_states.list_shared,
    events.AlterShareOffsets: share_states.alter_offsets,
    events.DeleteShareOffsets: share_states.delete_offsets,
    events.ShareOffsetsDeleted: share_states.on_offsets_deleted,
    events.BeginShareDeletion: share_states.begin_deletion,
    events.DeleteGroups: housekeeping.delete_groups,
    events.TopicsDeleted: housekeeping.on_topics_deleted,
    events.GatheringOver: consumer_heartbeat.on_gathering_over,
    events.PatternsDue: subscriptions.on_patterns_due,
    events.SessionExpired: requests.on_session_expired,
    events.RebalanceExpired: requests.on_rebalance_expired,
    events.ClassicStepExpired: consumer_leave.on_classic_step_expired,
    events.Downgraded: classic_members.on_downgraded,
    events.JoinPhaseExpired: classic_join.on_join_phase_expired,
    events.InitialDelayExpired: classic_join.on_initial_delay_expired,
    events.SyncPhaseExpired: classic_sync.on_sync_phase_expired,
    events.OffsetSweep: housekeeping.sweep,
    events.TopicsChanged: requests.on_topics_changed,
    events.AssignmentStored: classic_sync.on_assignment_stored,
}

_ON_FAILED: dict[type, Callable[[GroupsState, Turn, Any, KafkaError], None]] = {
    events.AssignmentStored: classic_sync.on_assignment_lost,
    events.StaticMemberStored: classic_join.on_static_member_lost,
    events.TopicsDeleted: housekeeping.on_topics_deleted_failed,
}


@dataclass(slots=True)
class GroupShard:
    state: GroupsState

    def decide(self, event: Event[object], now_ms: int) -> Effects | InSteps:
        turn = Turn(now_ms)
        if isinstance(event, Failed):
            _ON_FAILED[type(event.event)](self.state, turn, event.event, event.error)
        else:
            if self.state.foreign.newer:
                _check_newer(self.state, event)
            steps = _DECIDE[type(event)](self.state, turn, event)
            if steps is not None:
                return begun(self._decided(turn, steps))
        housekeeping.keep_sweeping(self.state, turn)
        return turn.effects

    def _decided(self, turn: Turn, steps: Steps[None]) -> Steps[Effects]:
        yield from steps
        housekeeping.keep_sweeping(self.state, turn)
        return turn.effects

    def mark(self, event: Event[object]) -> object:
        """What decisions change by themselves: a classic group, who waits, and which groups are.

        All else is the fold of the log.
        """
        group = self.state.classic_group(event.subject)
        changes = 0 if group is None else group.changes
        return changes, self.state.last_ticket, len(self.state.arrivals), len(self.state.groups)

    def replay(self, record: Record) -> None:
        replaying.replay(self.state, record)

    def replay_end_transaction(self, producer: Producer, committed: bool) -> Steps[None] | None:
        return self.state.offsets.replay_end_transaction(producer.producer_id, committed)

    def loaded(self, now_ms: int) -> Effects:
        """Every member that the log knows has one session timeout to show up again."""
        turn = Turn(now_ms)
        self.state.is_loaded = True
        other_kinds.take_ids(self.state)
        for group in list(self.state.groups.values()):
            if isinstance(group, ClassicGroup):
                self._resume(turn, group)
            elif isinstance(group, ConsumerGroup):
                consumer_leave.resume(self.state, turn, group)
            elif isinstance(group, ShareGroup):
                share_heartbeat.resume(self.state, turn, group)
            elif isinstance(group, StreamsGroup):
                streams_heartbeat.resume_streams(self.state, turn, group)
        housekeeping.keep_sweeping(self.state, turn)
        return turn.effects

    def _resume(self, turn: Turn, group: ClassicGroup) -> None:
        for member in group.members.values():
            arm_session(turn, group.group_id, member.member_id, member.session_timeout_ms)
        if len(group.members) > self.state.settings.max_size:
            # The limit was lowered: the members may commit and then compete for the places.
            classic_join.prepare(self.state, turn, group)


def _check_newer(state: GroupsState, event: Event[object]) -> None:
    """Refuses a request for a group of which only a part could be read."""
    if isinstance(event, events.OfRequest):
        other_kinds.check_newer(state, event.subject)
