"""Every history of a small partition: three replicas, a few records, a few deaths.

The decisions are the real ones: what a leader commits and asks of the controller, what a follower
asks and cuts, what the controller says and whom it elects. Logs are lists, the network brings each
answer at once or never. After each event what must hold is looked at; worlds that are alike are
gone on from once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.alter_partition import AlterPartition as Asked
from kafkalite.coordinators.cluster.alter_partition import WantedIsr, alter_partition
from kafkalite.coordinators.cluster.brokers import (
    FenceBroker,
    RegisterBroker,
    fence_broker,
    register_broker,
)
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.records import decode_record
from kafkalite.coordinators.cluster.states import BrokerState, PartitionState, Topic
from kafkalite.coordinators.cluster.view import View
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import finish
from kafkalite.log.append import Writable
from kafkalite.log.epochs import LeaderEpochs
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.replication import follower as following
from kafkalite.replication.follower import Copy, Fetched, FetchFrom, Follower, Range
from kafkalite.replication.leader import (
    Altered,
    AlterPartition,
    Committed,
    Leader,
    Leadership,
    Moment,
    Neighbours,
    ReplicaFetch,
)

ID = b"\1" * 16
IDS = (1, 2, 3)
_CONFIGS = {each: BrokerConfig({"min.insync.replicas": str(each)}) for each in (1, 2)}
_RECORD = struct.Struct(">ii")
Record = tuple[int, int]  # the epoch in which it was written, and a number that no other has


@dataclass
class Replica:
    """A log that outlives its broker, and the role that does not."""

    log: list[Record] = field(default_factory=list)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    high_watermark: int = 0
    role: Leader | Follower | None = None
    is_up: bool = True


class World:
    """One partition on three brokers."""

    def __init__(self, min_isr: int) -> None:
        self.min_isr = min_isr
        self.replicas = {each: Replica() for each in IDS}
        self.image = _image()
        self.acknowledged: list[Record] = []  # in the order of their offsets
        self.written = 0
        self.asked: tuple[int, AlterPartition] | None = None
        self.neighbours = Neighbours(epochs=dict.fromkeys(IDS, 0))
        self.hear()

    @property
    def state(self) -> PartitionState:
        return self.image.by_id[ID].partitions[0]

    def view(self) -> View:
        return View(self.image, _CONFIGS[self.min_isr], Random(1))

    def copy(self) -> World:
        other = copy(self)
        other.replicas = {key: _copied(each) for key, each in self.replicas.items()}
        other.image = _image()
        other.image.brokers = dict(self.image.brokers)
        other.image.by_id[ID].partitions[0] = self.state
        return other

    def enact(self, effects: Effects) -> None:
        for record in effects.records:
            message = record.decoded or decode_record(record.value or b"")
            self.image.apply(message, Changes())
        up = [each for each in self.image.brokers.values() if not each.is_fenced]
        self.neighbours = Neighbours(epochs={each.broker_id: each.epoch for each in up})
        self.hear()

    def hear(self) -> None:
        """Everybody who is up hears of the metadata at once."""
        state = self.state
        said = Leadership(
            state.leader, state.leader_epoch, state.partition_epoch, state.replicas, state.isr,
            state.replicas,
        )  # fmt: skip
        for broker_id, replica in self.replicas.items():
            if replica.is_up:
                self._take(broker_id, replica, said)

    def _take(self, broker_id: int, replica: Replica, said: Leadership) -> None:
        role = replica.role
        if said.leader_id == broker_id:
            if not isinstance(role, Leader):
                role = replica.role = Leader(broker_id)
            if role.take(said, len(replica.log), 0) and replica.log:
                replica.epochs.assign(said.leader_epoch, len(replica.log))
            self.settle(broker_id)
        elif said.leader_id == -1:
            replica.role = None
        elif isinstance(role, Follower):
            role.take(said)
        else:
            replica.role = Follower(said.leader_id, said.leader_epoch, said.partition_epoch)

    def moment(self, replica: Replica, now_ms: int = 0) -> Moment:
        end = len(replica.log)
        return Moment(
            now_ms, 0, replica.high_watermark, end, end, self.min_isr, self.neighbours
        )

    def settle(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        leader = replica.role
        assert isinstance(leader, Leader)
        self.advance(replica, leader.high_watermark(self.moment(replica)))

    def advance(self, replica: Replica, offset: int) -> None:
        replica.high_watermark = max(replica.high_watermark, min(offset, len(replica.log)))
        if isinstance(replica.role, Leader):  # whoever waits with acks=all is answered
            known, committed = self.acknowledged, replica.log[: replica.high_watermark]
            assert committed[: len(known)] == known[: len(committed)], "committed twice"
            self.acknowledged = max(known, committed, key=len)

    # --- events -----------------------------------------------------------------------------------

    def events(self, most_written: int) -> Iterator[tuple[str, int]]:
        leader = self.replicas.get(self.state.leader)
        if leader is not None and leader.is_up and self.written < most_written:
            yield "write", self.state.leader
        for broker_id, replica in self.replicas.items():
            if isinstance(replica.role, Follower) and replica.is_up:
                yield "fetch", broker_id
            if replica.is_up:
                yield "die", broker_id
            else:
                yield "return", broker_id
        if leader is not None and leader.is_up and self.asked is None:
            yield "lag", self.state.leader
        if self.asked is not None:
            yield "answer", self.asked[0]

    def write(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        leader = replica.role
        assert isinstance(leader, Leader)
        self.written += 1
        replica.epochs.assign(leader.leader_epoch, len(replica.log))
        replica.log.append((leader.leader_epoch, self.written))
        self.settle(broker_id)

    def fetch(self, broker_id: int) -> None:
        """A question, its answer, and what is done with that."""
        replica = self.replicas[broker_id]
        role = replica.role
        assert isinstance(role, Follower)
        if role.state is following.State.STARTING:
            self._do(replica, role, role.start(self._copy(replica)))
        asked = role.ask(self._copy(replica), 10**9)
        if isinstance(asked, FetchFrom):
            answer = self._serve(broker_id, asked)
            effects = role.fetched(asked, answer, self._copy(replica), 0)
            self._do(replica, role, effects)
        elif asked is not None:
            there = Range(0, len(self.replicas[asked.leader_id].log))
            self._do(replica, role, role.told_range(asked, there, self._copy(replica), 0))

    def _copy(self, replica: Replica) -> Copy:
        return Copy(0, replica.high_watermark, len(replica.log), replica.epochs)

    def _serve(self, broker_id: int, asked: FetchFrom) -> Fetched:
        there = self.replicas[asked.leader_id]
        leader = there.role
        assert isinstance(leader, Leader)
        assert leader.leader_epoch == asked.leader_epoch
        if asked.last_fetched_epoch != -1:
            epoch, end = there.epochs.end_offset_for(asked.last_fetched_epoch, len(there.log))
            if asked.last_fetched_epoch == leader.leader_epoch:
                epoch, end = leader.leader_epoch, len(there.log)
            if epoch == -1:
                return Fetched(Error.OFFSET_OUT_OF_RANGE)
            if epoch < asked.last_fetched_epoch or end < asked.offset:
                return Fetched(diverging=(epoch, end))
        assert asked.offset <= len(there.log)
        found = there.log[asked.offset :]
        answer = Fetched(
            records=_bytes_of(asked.offset, found) if found else None,
            high_watermark=there.high_watermark, log_start_offset=0,
        )  # fmt: skip
        epoch = self.neighbours.epochs.get(broker_id, -1)
        fetch = ReplicaFetch(asked.offset, 0, epoch)
        for effect in leader.fetched(broker_id, fetch, self.moment(there)):
            if isinstance(effect, Committed):
                self.advance(there, effect.high_watermark)
            elif isinstance(effect, AlterPartition):
                self.asked = asked.leader_id, effect
        return answer

    def _do(self, replica: Replica, role: Follower, effects: list[following.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, following.TruncateTo):
                is_shorter = effect.offset < len(replica.log)
                del replica.log[effect.offset :]
                # An epoch may have begun here in which nothing was written.
                is_changed = replica.epochs.truncate_end(effect.offset)
                assert is_shorter or is_changed, "nothing is cut"
                replica.high_watermark = min(replica.high_watermark, effect.offset)
                role.begin_again()
            elif isinstance(effect, following.Append):
                for record in _records_in(effect.records):
                    replica.epochs.assign(record[0], len(replica.log))
                    replica.log.append(record)
                self._do(replica, role, role.appended(effect, self._copy(replica)))
            elif isinstance(effect, Committed):
                self.advance(replica, effect.high_watermark)

    def lag(self, broker_id: int) -> None:
        """So much time passes that whoever is not at the end has to leave."""
        replica = self.replicas[broker_id]
        leader = replica.role
        assert isinstance(leader, Leader)
        for effect in leader.time_passed(self.moment(replica, 10**6)):
            assert isinstance(effect, AlterPartition)
            self.asked = broker_id, effect

    def answer(self, broker_id: int) -> None:
        assert self.asked is not None
        (_, wanted), self.asked = self.asked, None
        replica = self.replicas[broker_id]
        leader = replica.role
        if not replica.is_up or not isinstance(leader, Leader) or leader.pending is not wanted:
            return
        isr = WantedIsr(wanted.leader_epoch, wanted.partition_epoch, wanted.isr)
        epoch = self.image.brokers[broker_id].epoch
        try:
            effects = finish(alter_partition(self.view(), Asked(broker_id, epoch, {(ID, 0): isr})))
        except KafkaError as error:
            leader.altered(wanted, error.code, self.moment(replica))
            return
        assert isinstance(effects.reply, dict)
        outcome = effects.reply[ID, 0]
        self.enact(effects)
        if isinstance(outcome, PartitionState):
            done = Altered(outcome.leader_epoch, outcome.partition_epoch, outcome.isr)
            for effect in leader.altered(wanted, done, self.moment(replica)):
                assert isinstance(effect, Committed)
                self.advance(replica, effect.high_watermark)
        else:
            assert isinstance(outcome, Error)
            leader.altered(wanted, outcome, self.moment(replica))

    def die(self, broker_id: int) -> None:
        """Its process; what it wrote is in its files, but nobody vouches for it."""
        replica = self.replicas[broker_id]
        replica.is_up, replica.role = False, None
        if self.asked is not None and self.asked[0] == broker_id:
            self.asked = None
        self.enact(finish(fence_broker(self.view(), FenceBroker(broker_id))))

    def back(self, broker_id: int, *, is_clean: bool) -> None:
        self.replicas[broker_id].is_up = True
        view = self.view()
        view.next_offset = self.image.brokers[broker_id].epoch + 1
        asked = RegisterBroker(broker_id, [], None, [bytes([broker_id]) * 16], is_clean)
        self.enact(finish(register_broker(view, asked)))

    # --- what must hold ---------------------------------------------------------------------------

    def check(self) -> None:
        known = self.acknowledged
        state = self.state
        leader = self.replicas.get(state.leader)
        if leader is not None:
            assert leader.is_up, "a leader that is not up"
            assert leader.log[: len(known)] == known, "acknowledged, and not there"
        for broker_id in (*state.isr, *state.elr):
            log = self.replicas[broker_id].log
            assert log[: len(known)] == known, f"{broker_id} is in sync without what is committed"
        for replica in self.replicas.values():
            committed = replica.log[: replica.high_watermark]
            assert committed == known[: len(committed)], "committed here, and not so elsewhere"

    def key(self) -> object:
        """Worlds with the same go on alike."""
        names: dict[int, int] = {}

        def named(log: list[Record]) -> tuple[tuple[int, int], ...]:
            return tuple((epoch, names.setdefault(number, len(names))) for epoch, number in log)

        return (
            self.written, named(self.acknowledged), self.asked is not None,
            replace(self.state, partition_epoch=0),
            tuple(
                (
                    named(each.log), tuple(each.epochs.entries()), each.high_watermark, each.is_up,
                    _role_key(each.role),
                )
                for each in self.replicas.values()
            ),
        )  # fmt: skip


def _copied(replica: Replica) -> Replica:
    role = copy(replica.role)
    if isinstance(role, Leader):
        role.followers = {key: copy(each) for key, each in role.followers.items()}
    epochs = LeaderEpochs.of(replica.epochs.entries())
    return replace(replica, log=replica.log.copy(), epochs=epochs, role=role)


def _role_key(role: Leader | Follower | None) -> object:
    if isinstance(role, Leader):
        pending = role.pending
        wanted = None if pending is None else (pending.isr, pending.joining)
        known = tuple(sorted((key, one.end_offset) for key, one in role.followers.items()))
        return role.leader_epoch, wanted, known
    return None if role is None else (role.leader_epoch, role.state)


def _bytes_of(offset: int, found: list[Record]) -> bytearray:
    """What a follower's role looks at is the first offset."""
    parts = [offset.to_bytes(8, "big"), *(_RECORD.pack(*record) for record in found)]
    return bytearray(b"".join(parts))


def _records_in(records: Writable) -> list[Record]:
    return [(epoch, number) for epoch, number in _RECORD.iter_unpack(memoryview(records)[8:])]


def _image() -> Image:
    image = Image()
    image.features |= {"metadata.version": 30, "eligible.leader.replicas.version": 1}
    for each in IDS:
        directory = (bytes([each]) * 16,)
        image.brokers[each] = BrokerState(
            each, 0, b"", (), (), None, False, False, directory, ()
        )
    topic = image.topics["t"] = image.by_id[ID] = Topic("t", ID)
    directories = tuple(bytes([each]) * 16 for each in IDS)
    topic.partitions[0] = PartitionState(ID, 0, IDS, IDS, 1, 0, 0, directories)
    return image


def explore(min_isr: int, depth: int, *, is_clean: bool) -> int:
    """How many worlds there are that are not alike."""
    worlds, seen = [World(min_isr)], set[object]()
    for _ in range(depth):
        found = []
        for world in worlds:
            for name, broker_id in world.events(most_written=3):
                after = world.copy()
                if name == "return":
                    after.back(broker_id, is_clean=is_clean)
                else:
                    getattr(after, name)(broker_id)
                key = after.key()
                if key not in seen:
                    seen.add(key)
                    after.check()
                    found.append(after)
        worlds = found
    return len(seen)


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("min_isr", [1, 2])
def test_nothing_acknowledged_is_lost_whatever_happens_in_whatever_order(
    min_isr: int, is_clean: bool
) -> None:
    assert explore(min_isr, 6, is_clean=is_clean) > 3_000
