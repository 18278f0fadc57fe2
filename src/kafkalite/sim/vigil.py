"""What must hold at every moment of a run, and not only at its end: looked at again and again.

Owns since when something has been as it must not stay. Knows the broker from inside, and reads no
more of it than it has to. Invariant: what it reports lasted longer than anything in a sound broker
does, however slow its disks and clients are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.coordinators.asked import State as RuntimeState
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from kafkalite.coordinators.groups.shard import GroupShard
from kafkalite.coordinators.groups.streams_group import StreamsGroup
from kafkalite.coordinators.transactions.events import WriteMarkers
from kafkalite.coordinators.transactions.shard import TransactionShard
from kafkalite.coordinators.transactions.transaction import PREPARED, State, Transaction

if TYPE_CHECKING:
    from kafkalite.sim.world import World

LOOK_EVERY_MS = 200
# A moment passes between the end of a wait and the next step, seconds between a shard and the next.
UNATTENDED_MS = 3_000
# A new producer id may wait for the slowest of disks.
OVERDUE_MS = 30_000
# While files cannot be opened, and for a while after it, a coordinator may not know its log.
UNLOADED_MS = 10_000

Case = tuple[str, str]


@dataclass(slots=True)
class Vigil:
    """Looks at one world as long as it lasts."""

    world: World
    found: list[Case] = field(default_factory=list)
    _since_ms: dict[Case, int] = field(default_factory=dict)
    _kinds: dict[str, type] = field(default_factory=dict)

    def begin(self) -> None:
        self.world.clock.call_later(LOOK_EVERY_MS, self._look)

    def _look(self) -> None:
        self.begin()
        now_ms = self.world.clock.monotonic_ms()
        passing = dict(self._passing()) if self.world.is_up else {}
        self._since_ms = {case: self._since_ms.get(case, now_ms) for case in passing}
        for case, most_ms in passing.items():
            if now_ms - self._since_ms[case] > most_ms and case not in self.found:
                self.found.append(case)

    def _passing(self) -> Iterator[tuple[Case, int]]:
        """What is so now and must not stay so, and for how long it may."""
        yield from self._held_twice()
        yield from self._given_up()
        transactions = self.world.broker.context.transactions
        under_way = [errand.transaction for errand in transactions.errands.under_way]
        for runtime in transactions.runtimes.values():
            if runtime.state is not RuntimeState.ACTIVE:
                continue
            assert isinstance(runtime.shard, TransactionShard)
            waiting = [
                errand.transaction
                for errand in runtime.waiting_errands
                if isinstance(errand, WriteMarkers)
            ]
            attended = set(map(_name_of, [*under_way, *waiting]))
            for each in runtime.shard.transactions.values():
                self._note(f"transactions: {each.state.title}")
                if each.state in PREPARED and _name_of(each) not in attended:
                    yield ("unattended", _name_of(each)), UNATTENDED_MS
                elif each.state is State.ONGOING and not each.is_two_phase:
                    yield ("open for too long", _name_of(each)), each.timeout_ms + OVERDUE_MS


    def _given_up(self) -> Iterator[tuple[Case, int]]:
        """A coordinator whose log could not be read once is never asked for it again."""
        context = self.world.broker.context
        for shards in (context.groups, context.transactions, context.shares):
            for index, runtime in shards.runtimes.items():
                if runtime.state is RuntimeState.FAILED and self.world.trouble is None:
                    yield ("given up", f"{shards.topic}-{index}"), UNLOADED_MS

    def _held_twice(self) -> Iterator[tuple[Case, int]]:
        """Two members of a group have, or have yet to give back, the same partition or task."""
        for runtime in self.world.broker.context.groups.runtimes.values():
            if runtime.state is not RuntimeState.ACTIVE:
                continue
            assert isinstance(runtime.shard, GroupShard)
            for name, group in runtime.shard.state.groups.items():
                self._note_kind(name, group)
                held = list(_held(group))
                if len(held) != len(set(held)):
                    yield ("held twice", f"{sorted(map(str, held))} in {name}"), -1


    # --- what was met -----------------------------------------------------------------------------

    def _note(self, what: str) -> None:
        self.world.history.count(what)

    def _note_kind(self, name: str, group: object) -> None:
        """States, and which protocol a group has gone over to."""
        before = self._kinds.get(name)
        if isinstance(group, ConsumerGroup):
            if before is ClassicGroup:
                self._note("upgrades")
            for each in group.members.values():
                self._note(f"consumer members: {each.state.name}")
        elif isinstance(group, ClassicGroup):
            if before is ConsumerGroup:
                self._note("downgrades")
            self._note(f"classic groups: {group.state.value}")
        elif isinstance(group, StreamsGroup):
            self._note(f"streams groups: {group.state.value}")
            for member in group.members.values():
                self._note(f"streams members: {member.state.name}")
        self._kinds[name] = type(group)


def _held(group: object) -> Iterator[object]:
    """What one member of the group alone may have, of each who has it or has yet to give it back;
    of a streams group these are active tasks."""
    if isinstance(group, ConsumerGroup):
        for each in group.members.values():
            yield from each.holds()
    elif isinstance(group, StreamsGroup):
        for member in group.members.values():
            for tasks in (member.assigned.active, member.pending_revocation.active):
                yield from ((name, index) for name, indexes in tasks.items() for index in indexes)


def _name_of(each: Transaction) -> str:
    """One transaction, and no other of its producer."""
    return (
        f"{each.state.title} of {each.transactional_id!r}, begun at {each.started_ms} by"
        f" {each.producer_id} in epoch {each.producer_epoch}"
    )
