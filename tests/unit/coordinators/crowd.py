"""Random people around one group: they join, die, forget, and commit; the coordinator restarts.

Every client believes what it was told, as real ones do. After each step the world's rules are
checked; a run is a seed, so a failure can be played again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafkalite.coordinators.asked import State
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.groups import events, migration, records
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.consumer_group import ClassicSide, ConsumerGroup
from kafkalite.coordinators.groups.gathering import Gathering
from kafkalite.coordinators.groups.other_kinds import ForeignGroup
from kafkalite.coordinators.groups.settings import GroupSettings
from kafkalite.coordinators.groups.shard import GroupShard
from kafkalite.coordinators.groups.state import Group, GroupsState
from kafkalite.coordinators.loading import Loading
from kafkalite.coordinators.runtime import Runtime
from kafkalite.env import manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import InSteps, Slices, finish
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.unit.coordinators.power_cuts import BUGS, CuttingPartition
from tests.unit.coordinators.stage import StageTopics, subscription
from tests.unit.coordinators.tickets import check_tickets

GROUP = "crowd"
TOPIC = "orders"
PARTITIONS = 6
FOLD_EVERY = 10  # steps; reading the whole log is most of a run's time
FORGOTTEN = (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.GROUP_ID_NOT_FOUND)


@dataclass(slots=True)
class Client:
    """One program. `epoch` is a generation or a member epoch."""

    name: str
    is_consumer: bool
    instance_id: str | None
    member_id: str = ""
    epoch: int = -1
    incarnation: int = 0
    is_waiting: bool = False
    has_joined: bool = False
    owned: set[int] = field(default_factory=set)

    def forget(self) -> None:
        """Starts anew; whoever waits for the former self hears nothing."""
        self.incarnation += 1
        self.member_id = f"{self.name}-{self.incarnation}" if self.is_consumer else ""
        self.epoch = 0 if self.is_consumer else -1
        self.is_waiting = self.has_joined = False
        self.owned = set()


class WatchedShard(GroupShard):
    """Sees that a decision that says it changed nothing has changed nothing."""

    def decide(self, event: Any, now_ms: int) -> Effects | InSteps:
        mark, before = self.mark(event), self._volatile()
        try:
            return GroupShard.decide(self, event, now_ms)
        finally:
            assert self.mark(event) != mark or self._volatile() == before

    def _volatile(self) -> str:
        groups = self.state.groups.values()
        classic = [group for group in groups if isinstance(group, ClassicGroup)]
        return f"{classic} {self.state.arrivals} {list(self.state.groups)}"


class Crowd:
    """The world: one shard, its log, and the clients."""

    def __init__(self, seed: int, *, kinds: str, client_count: int = 5) -> None:
        self.random = Random(seed)
        self.env = manual_env(seed)
        assert isinstance(self.env.clock, ManualClock)
        self.clock = self.env.clock
        self.settings = GroupSettings(gathering=Gathering() if seed % 2 else None)
        self.topics = StageTopics()
        self.topics.add(TOPIC, PARTITIONS)
        view = self.topics.by_name(TOPIC)
        assert view is not None
        self.topic_id = view.topic_id
        self.partition = CuttingPartition()
        self.runtime = Runtime(self.env, self.partition, self._make_shard)
        self.runtime.load()
        self.clients = [self._client(number, kinds) for number in range(client_count)]
        self.counter = 0
        self.steps = 0
        self.acknowledged: dict[int, int] = {}
        # What members were told to own, by generation; only what classic groups say.
        self.told: dict[tuple[int, int], str] = {}

    def _make_shard(self) -> GroupShard:
        return WatchedShard(GroupsState(self.settings, self.topics, self.env.random))

    def _client(self, number: int, kinds: str) -> Client:
        is_consumer = kinds[number % len(kinds)] == "c"
        instance_id = f"i{number}" if number % 3 == 0 else None
        client = Client(f"m{number}", is_consumer, instance_id)
        client.forget()
        return client

    @property
    def state(self) -> GroupsState:
        assert isinstance(self.runtime.shard, GroupShard)
        return self.runtime.shard.state

    def _partition_count(self) -> int:
        view = self.topics.by_name(TOPIC)
        assert view is not None
        return view.partition_count

    # -- steps -----------------------------------------------------------------------------

    def step(self) -> None:
        roll = self.random.random()
        if roll < 0.05:
            self.partition.is_cutting = True
        elif roll < 0.08:
            self.runtime.unload()
            self.runtime.load()
        elif roll < 0.25:
            self.clock.advance(self.random.choice([0, 1, 50, 1_000, 5_000, 20_000, 50_000]))
        elif roll < 0.28:
            self.topics.add(TOPIC, self.random.randint(1, PARTITIONS))
            self.runtime.submit(events.TopicsChanged([TOPIC]))
        else:
            self._act(self.random.choice(self.clients))
        if self.runtime.state is not State.ACTIVE:
            self.clock.advance(1_000)
        self.check()

    def _act(self, client: Client) -> None:
        roll = self.random.random()
        if roll < 0.06:
            client.forget()
        elif roll < 0.10:
            self._leave(client)
        elif roll < 0.30:
            self._commit(client)
        elif client.is_consumer:
            self._beat(client)
        elif client.is_waiting:
            return
        elif not client.has_joined:
            self._join(client)
        else:
            self._heartbeat(client)

    def _submit(self, client: Client, event: Any, react: Any) -> None:
        incarnation = client.incarnation

        def answered(answer: Any) -> None:
            if client.incarnation == incarnation:
                react(answer)

        self.runtime.submit(event).then(answered)

    # -- classic clients -------------------------------------------------------------------

    def _join(self, client: Client) -> None:
        metadata = subscription([TOPIC], {TOPIC: sorted(client.owned)})
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=30_000,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=metadata)],
        )
        client.is_waiting = True

        def react(answer: Any) -> None:
            client.is_waiting = False
            code = _code(answer)
            if code == Error.MEMBER_ID_REQUIRED:
                client.member_id = answer.member_id
            elif code in FORGOTTEN:
                client.forget()
            elif code == Error.NONE:
                client.member_id = answer.member_id
                client.epoch = answer.generation_id
                client.has_joined = True
                self._sync(client, [member.member_id for member in answer.members])

        self._submit(client, events.Join(request, 9, client.name, "/h"), react)

    def _sync(self, client: Client, members: list[str]) -> None:
        shares: dict[str, list[int]] = {member_id: [] for member_id in members}
        for index in range(self._partition_count() if members else 0):
            shares[members[index % len(members)]].append(index)
        side = ClassicSide(0, [("range", subscription([TOPIC]))])
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=client.epoch,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            assignments=[
                SyncGroupRequest.Assignment(
                    member_id=member_id,
                    assignment=finish(
                        migration.embedded_assignment(
                            self.state, side, {self.topic_id: tuple(share)}
                        )
                    ),
                )
                for member_id, share in shares.items()
            ],
        )
        client.is_waiting = True
        generation = client.epoch

        def react(answer: Any) -> None:
            client.is_waiting = False
            code = _code(answer)
            if code in FORGOTTEN:
                client.forget()
            elif code != Error.NONE:
                client.has_joined = False
            else:
                self._take(client, generation, bytes(answer.assignment))

        self._submit(client, events.Sync(request), react)

    def _take(self, client: Client, generation: int, assignment: bytes) -> None:
        from kafkalite.coordinators.groups.consumer_protocol import read_assignment

        read = read_assignment(assignment)
        client.owned = set()
        for one in [] if read is None else read.assigned_partitions:
            client.owned.update(one.partitions)
        if not isinstance(self.state.groups.get(GROUP), ClassicGroup):
            return
        owner = client.instance_id or client.member_id
        for index in client.owned:
            first = self.told.setdefault((generation, index), owner)
            assert first == owner, f"{index} has two owners in generation {generation}"

    def _heartbeat(self, client: Client) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=client.epoch,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
        )

        def react(answer: Any) -> None:
            code = _code(answer)
            if code in FORGOTTEN:
                client.forget()
            elif code in (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION):
                client.has_joined = False

        self._submit(client, events.Heartbeat(request), react)

    # -- consumers -------------------------------------------------------------------------

    def _beat(self, client: Client) -> None:
        is_first = client.epoch == 0
        # A slow client reports what it still has, a quick one what it was told to have.
        request = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=client.member_id,
            member_epoch=client.epoch,
            instance_id=client.instance_id,
            rebalance_timeout_ms=30_000 if is_first else -1,
            subscribed_topic_names=[TOPIC] if is_first else None,
            topic_partitions=[
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=self.topic_id, partitions=sorted(client.owned)
                )
            ]
            if client.owned and not is_first
            else [],
        )

        def react(answer: Any) -> None:
            code = _code(answer)
            if code in (*FORGOTTEN, Error.FENCED_MEMBER_EPOCH):
                client.forget()
            elif code == Error.NONE:
                client.epoch = answer.member_epoch
                if answer.assignment is not None:
                    client.owned = {
                        index
                        for one in answer.assignment.topic_partitions
                        for index in one.partitions
                    }

        self._submit(client, events.ConsumerHeartbeat(request, 1, client.name, "/h"), react)

    # -- both ------------------------------------------------------------------------------

    def _leave(self, client: Client) -> None:
        if client.is_consumer:
            is_static = client.instance_id is not None and self.random.random() < 0.7
            request = ConsumerGroupHeartbeatRequest(
                group_id=GROUP,
                member_id=client.member_id,
                member_epoch=-2 if is_static else -1,
                instance_id=client.instance_id,
            )
            self.runtime.submit(events.ConsumerHeartbeat(request, 1, client.name, "/h"))
        else:
            member = LeaveGroupRequest.Member(
                member_id=client.member_id, group_instance_id=client.instance_id
            )
            self.runtime.submit(events.Leave(LeaveGroupRequest(group_id=GROUP, members=[member])))
        client.forget()

    def _commit(self, client: Client) -> None:
        if not client.owned or not client.member_id:
            return
        index = self.random.choice(sorted(client.owned))
        self.counter += 1
        value = self.counter
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=client.epoch,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            topics=[
                OffsetCommitRequest.Topic(
                    name=TOPIC,
                    topic_id=self.topic_id,
                    partitions=[
                        OffsetCommitRequest.Partition(partition_index=index, committed_offset=value)
                    ],
                )
            ],
        )
        member_id, epoch = client.member_id, client.epoch

        def react(answer: Any) -> None:
            if _code(answer) == Error.NONE:
                self.acknowledged[index] = value
                self._check_committer(member_id, epoch, index)

        self._submit(client, events.CommitOffsets(request, 9), react)

    # -- rules -----------------------------------------------------------------------------

    def _check_committer(self, member_id: str, epoch: int, index: int) -> None:
        """Who commits is a member, of this generation or with a partition it had since."""
        group = self.state.groups[GROUP]
        assert not isinstance(group, ForeignGroup)
        assert member_id in group.members
        if isinstance(group, ClassicGroup):
            assert group.generation == epoch
        else:
            assert isinstance(group, ConsumerGroup)
            member = group.members[member_id]
            assigned_in = member.assignment_epoch(self.topic_id, index)
            assert epoch == member.member_epoch or (assigned_in or epoch + 1) <= epoch

    def check(self) -> None:
        if BUGS.found:
            raise BUGS.found.pop(0)
        if self.runtime.state is not State.ACTIVE:
            return
        for index, value in self.acknowledged.items():
            kept = self.state.offsets.get(GROUP, TOPIC, index)
            assert kept is not None, f"the commit of {index} is lost"
            assert kept.offset >= value, f"the commit of {index} went back"
        check_tickets(self.runtime)
        self.steps += 1
        if self.steps % FOLD_EVERY == 0:
            self._check_fold()
        group = self.state.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            self.told.clear()  # a classic group that comes after counts from the start
            self._check_owners(group)

    def _check_owners(self, group: ConsumerGroup) -> None:
        held: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for place in member.holds():
                assert place not in held, f"{place[1]} is held by two members"
                held[place] = member.member_id
        assert held == group.owners
        if not group.must_refresh and group.assignment_epoch == group.epoch:
            targets = [target.get(self.topic_id, ()) for target in group.targets.values()]
            targeted = sorted(index for target in targets for index in target)
            assert targeted == list(range(self._partition_count())), "nobody reads the others"
        for client in self.clients:
            found = group.members.get(client.member_id)
            if found is not None and client.is_consumer and found.member_epoch > 0:
                has = {index for _, index in found.holds()}
                is_current = client.epoch == found.member_epoch
                assert not is_current or client.owned <= has, f"{client.name} owns too much"

    def _check_fold(self) -> None:
        """A coordinator that reads the log now knows what this one knows."""
        shard = self._make_shard()
        clock = ManualClock()  # of its own: for the crowd no time passes
        Loading(Slices(clock), self.partition, shard, _loaded).start()
        clock.advance(0)
        folded = shard.state
        assert folded.offsets == self.state.offsets
        live = {key: one for key, one in self.state.groups.items() if _is_durable(one)}
        assert {key: _essence(one) for key, one in folded.groups.items() if key in live} == {
            key: _essence(one) for key, one in live.items()
        }
        assert folded.groups.keys() >= live.keys()


def _loaded(loading: Loading, failure: BaseException | None) -> None:
    assert failure is None, failure


def _is_durable(group: Group) -> bool:
    """A classic group in the middle of a rebalance is ahead of its log."""
    if not isinstance(group, ClassicGroup):
        return True
    return group.is_stored and group.state.value in ("Stable", "Empty")


# Of a group, and in no record: when its patterns are to be looked at again.
VOLATILE = ("must_refresh", "matched_ms")


def _essence(group: Group) -> Any:
    """What must be the same after a restart."""
    if not isinstance(group, ClassicGroup):
        names = group.__slots__
        return {name: getattr(group, name) for name in names if name not in VOLATILE}
    value = records.group_metadata(group).decoded[1]
    value.current_state_timestamp = 0  # when it became stable is not when it was written
    return value


def _code(answer: Any) -> int:
    if isinstance(answer, KafkaError):
        return answer.code
    return getattr(answer, "error_code", Error.NONE)
