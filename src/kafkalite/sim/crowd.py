"""The members of one group in a world: who comes, dies, leaves and comes back as another kind.

Owns their fates, and the judgement on the group once everybody has had peace for long: each
partition has one owner, who subscribed to it, and nothing that was committed is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetFetchRequest
from kafkalite.sim.client import Ask, Client, Script, Sleep
from kafkalite.sim.members import GROUP, ClassicMember, ConsumerMember, Member, Membership

if TYPE_CHECKING:
    from kafkalite.sim.world import World

SIZE = 3
BACK_MS = 400
Anomaly = tuple[str, str]


@dataclass(slots=True)
class Place:
    """Where one member follows another, by whichever protocol."""

    number: int
    member: Member
    client: Client
    incarnations: int = 1
    is_awaited: bool = False  # the one who follows


@dataclass(slots=True)
class Crowd:
    """All members of the group."""

    world: World
    membership: Membership
    places: list[Place] = field(default_factory=list)

    def come(self) -> None:
        for number in range(SIZE):
            member = self._member(number, 1)
            place = Place(number, member, self.world.client(may_be_late=False))
            self.places.append(place)
            place.client.start(member.script())

    def strike(self) -> None:
        """Somebody dies or leaves, and another follows some time later."""
        place = self.world.random.choice(self.places)
        if place.is_awaited:
            return
        place.is_awaited = True
        if self.world.random.random() < 0.5:
            place.client.kill()
            self.world.history.count("member kills")
        else:
            place.member.is_leaving = lambda: True
            self.world.history.count("members that left")
        delay_ms = self.world.random.randrange(BACK_MS)
        self.world.clock.call_later(delay_ms, lambda: self._follow(place))

    def _follow(self, place: Place) -> None:
        place.incarnations += 1
        place.is_awaited = False
        place.member = self._member(place.number, place.incarnations)
        place.client = self.world.client(may_be_late=False)
        place.client.start(place.member.script())

    def _member(self, number: int, incarnation: int) -> Member:
        random = self.world.random
        kind = random.choice((ClassicMember, ConsumerMember))
        count = self.world.history.count
        count(f"members by the {'classic' if kind is ClassicMember else 'consumer'} protocol")
        member = kind(
            f"member-{number}.{incarnation}", random, self.world.history, self.membership,
            instance_id=f"instance-{number}" if number == 0 else None,
            subscribed=random.random() < 0.85,
        )
        if not member.subscribed:
            count("members without a subscription")
        if member.instance_id is not None:
            count("static members")
            if incarnation > 1 and type(self.places[number].member) is not kind:
                count("static members of another protocol than before")
        return member

    # --- the judgement ----------------------------------------------------------------------------

    def check(self) -> Iterator[Anomaly]:
        """After long peace, while they still live."""
        owners: dict[int, list[str]] = {}
        for place in self.places:
            member = place.member
            who = f"{type(member).__name__} {member.name}"
            if not (place.client.is_running and member.is_steady):
                yield "not in the group", who
            if member.owned and not member.subscribed:
                yield "owned without a subscription", f"{who} has {sorted(member.owned)}"
            for index in member.owned:
                owners.setdefault(index, []).append(who)
        if any(place.member.subscribed for place in self.places):
            for index in range(self.membership.partition_count):
                if len(owners.get(index, [])) != 1:
                    yield "not owned by one", f"partition {index}: {owners.get(index)}"

    def check_commits(self, found: dict[int, int]) -> Iterator[Anomaly]:
        """Each commit that was acknowledged last, or one that came behind it, is there."""
        for (_, index), legal in self.membership.commits.items():
            if max(0, found.get(index, -1)) not in legal:
                yield "commit lost", f"partition {index} is at {found.get(index)}, not {legal}"


def read_commits(membership: Membership, found: dict[int, int]) -> Script:
    indexes = list(range(membership.partition_count))
    wanted = OffsetFetchRequest.GroupTopic(name=membership.topic, partition_indexes=indexes)
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequest.Group(group_id=GROUP, topics=[wanted])], require_stable=True
    )
    while not found:
        [answer] = yield Ask([(request, 8)])
        if answer is not None and answer.groups[0].error_code == Error.NONE:
            for each in answer.groups[0].topics[0].partitions:
                found[each.partition_index] = each.committed_offset
        yield Sleep(20)
