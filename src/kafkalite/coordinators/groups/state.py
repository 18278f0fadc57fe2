"""Everything one shard knows: its groups, their offsets, and what it may ask about topics.

Owns the dictionaries. Durable parts are changed by `replay` alone, volatile parts (who waits,
who is about to join) by decisions. Invariant: a group id that was only asked about is not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from kafkalite.coordinators.groups.gathering import LookUps
from kafkalite.coordinators.groups.offsets import OffsetStore
from kafkalite.coordinators.groups.other_kinds import ForeignGroup, ForeignRecords
from kafkalite.coordinators.groups.settings import GroupSettings
from kafkalite.coordinators.groups.share_group import ShareGroup
from kafkalite.coordinators.groups.streams_group import StreamsGroup
from kafkalite.coordinators.groups.topics import Topics
from kafkalite.env.slicing import STRETCH_MS, Pace

if TYPE_CHECKING:
    from random import Random

    from kafkalite.protocol.messages import ConsumerGroupHeartbeatRequest

Group = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup | ForeignGroup

# Groups and offsets that housekeeping looks at in a stretch of time; it takes some 6 ms.
STRETCH_WORK = 5_000


def new_pace() -> Pace:
    """What all shards of a broker share, since their timers may fire in one turn."""
    return Pace(STRETCH_MS, STRETCH_WORK)


@dataclass(slots=True)
class Arrival:
    """A first heartbeat that waits for others to come: its ticket, and what it asked for."""

    ticket: int
    request: ConsumerGroupHeartbeatRequest
    member_id: str


@dataclass(slots=True)
class Arrivals:
    """Those who have come to a new consumer group, and how long it waits for more at most."""

    until_ms: int
    waiting: list[Arrival] = field(default_factory=list)


@dataclass(slots=True)
class Unswept:
    """What the sweep under way has yet to look at: groups, and places of the last of them."""

    groups: list[str]
    places: Iterator[tuple[str, int]] | None = None


@dataclass(slots=True)
class GroupsState:
    settings: GroupSettings
    topics: Topics
    random: Random
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: OffsetStore = field(default_factory=OffsetStore)
    # Who waits in new consumer groups, by group id.
    arrivals: dict[str, Arrivals] = field(default_factory=dict)
    # Until when new streams groups wait for more members, by group id.
    streams_delays: dict[str, int] = field(default_factory=dict)
    look_ups: LookUps = field(default_factory=LookUps)
    foreign: ForeignRecords = field(default_factory=ForeignRecords)
    # When share coordinators were asked last to initialize a topic for a group.
    initialize_asked_ms: dict[tuple[str, bytes], int] = field(default_factory=dict)
    is_loaded: bool = False
    # Behind the last record that was replayed.
    end_offset: int = 0
    # When the next sweep for expired offsets is due; -1 when none is armed.
    next_sweep_ms: int = -1
    unswept: Unswept | None = None
    pace: Pace = field(default_factory=new_pace)
    last_ticket: int = 0

    def next_ticket(self) -> int:
        self.last_ticket += 1
        return self.last_ticket

    def new_uuid(self) -> str:
        """A random UUID, version 4, as text."""
        bits = self.random.getrandbits(128)
        bits = bits & ~(0xF << 76) & ~(0x3 << 62) | 0x4 << 76 | 0x2 << 62
        digits = f"{bits:032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def share_group(self, group_id: str) -> ShareGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def streams_group(self, group_id: str) -> StreamsGroup | None:
        group = self.groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    def was_asked_of_late(self, group_id: str, topic_id: bytes, now_ms: int) -> bool:
        """Whether an answer of share coordinators may still come."""
        asked_ms = self.initialize_asked_ms.get((group_id, topic_id))
        retry_ms = self.settings.share_initialize_retry_ms
        return asked_ms is not None and 0 <= now_ms - asked_ms < retry_ms

    def answered(self, group_id: str, topic_ids: Iterable[bytes]) -> None:
        """They have."""
        for topic_id in topic_ids:
            self.initialize_asked_ms.pop((group_id, topic_id), None)

    def create_classic_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        group = ClassicGroup(group_id, state_timestamp_ms=now_ms)
        self.groups[group_id] = group
        return group
