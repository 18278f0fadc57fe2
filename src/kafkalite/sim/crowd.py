"""The members of one group that reads: which of them is of which kind.

Owns the judgement on the group once everybody has had peace for long: each partition has one owner,
who subscribed to it, and nothing that was committed is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetFetchRequest
from kafkalite.sim.client import Ask, Client, Script, Sleep
from kafkalite.sim.members import GROUP, ClassicMember, ConsumerMember, Membership, Reader
from kafkalite.sim.places import Anomaly, Places


@dataclass(slots=True)
class Crowd(Places[Reader]):
    """All members of the group."""

    membership: Membership

    def make(self, number: int, incarnation: int, client: Client) -> Reader:
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
