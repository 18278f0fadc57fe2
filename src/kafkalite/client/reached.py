"""How far groups have come, by partition, and where one would go on after a reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkalite.client.cluster import Cluster
from kafkalite.client.consuming import Reader, Start
from kafkalite.client.survey import Group, Place, Survey


@dataclass(slots=True)
class Reached:
    """None is what nobody told, or what is not so."""

    topic: str
    partition: int
    committed: int | None
    ends: int | None
    member: str | None  # who reads it: a client id

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.ends is None:
            return None
        return max(self.ends - self.committed, 0)


def reached(found: Survey, group: Group) -> list[Reached]:
    """The partitions that it has committed or that one of its members reads."""
    readers = {
        (topic, index): each.client_id
        for each in group.members
        for topic, partitions in each.assigned.items()
        for index in partitions
    }
    return [
        Reached(*place, group.committed.get(place), found.end(place), readers.get(place))
        for place in sorted(group.committed.keys() | readers.keys())
    ]


def lag_of(found: Survey, group: Group) -> int | None:
    """All of it; None where nothing is known."""
    known = [each.lag for each in reached(found, group) if each.lag is not None]
    return sum(known) if known else None


def positions(
    cluster: Cluster, topic: str, start: Start, timeout_s: float, tell: Callable[[str], None]
) -> dict[Place, int]:
    """The offset of each partition at which something begins; one that is not there is said, and
    the nearest that is taken: whoever went on from it would be sent elsewhere."""
    reader = Reader(
        cluster, topic, partitions=(), start=start, follows=False, is_committed=False,
        timeout_s=timeout_s, tell=tell,
    )  # fmt: skip
    found = {}
    for index, position in reader.beginnings.items():
        end = reader.ends[index]
        found[topic, index] = min(position, end)
        if position > end:
            tell(f"{topic}-{index} ends at {end}: there is no offset {position} to go on from")
    return found
