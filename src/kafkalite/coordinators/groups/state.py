"""Everything one shard knows: its groups, their offsets, and what it may ask about topics.

Owns the dictionaries. Durable parts are changed by `replay` alone, volatile parts (who waits,
who is about to join) by decisions. Invariant: a group id that was only asked about is not here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from kafkalite.coordinators.groups.offsets import OffsetStore
from kafkalite.coordinators.groups.settings import GroupSettings
from kafkalite.coordinators.groups.topics import Topics

if TYPE_CHECKING:
    from random import Random

Group = ClassicGroup | ConsumerGroup


@dataclass(slots=True)
class GroupsState:
    settings: GroupSettings
    topics: Topics
    random: Random
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: OffsetStore = field(default_factory=OffsetStore)
    is_loaded: bool = False
    # When the next sweep for expired offsets is due; -1 when none is armed.
    next_sweep_ms: int = -1
    _last_ticket: int = 0

    def next_ticket(self) -> int:
        self._last_ticket += 1
        return self._last_ticket

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

    def create_classic_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        group = ClassicGroup(group_id, state_timestamp_ms=now_ms)
        self.groups[group_id] = group
        return group
