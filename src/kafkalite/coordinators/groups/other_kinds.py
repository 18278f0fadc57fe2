"""Groups that this broker does not serve: their records are kept, their ids are taken.

Owns the keys of such records in a partition of __consumer_offsets: of kinds nobody here knows, and
of values in a newer version. A newer broker goes on with these groups in the same directory, and
one group of another kind under such an id would keep it from loading the whole partition. So
nothing is written for them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from kafkalite.coordinators.effects import Record
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.protocol.errors import Error, KafkaError

if TYPE_CHECKING:
    from kafkalite.coordinators.groups.state import GroupsState

log = logging.getLogger(__name__)

# What Apache Kafka before 4.2 kept of a streams group besides, and nobody reads any more.
STREAMS_PARTITIONS = 18
# What ListGroups calls their type.
UNKNOWN = "unknown"


class ForeignState(Enum):
    UNKNOWN = "Unknown"


def key_type(key: bytes) -> int:
    return int.from_bytes(key[:2], "big", signed=True)


def group_of(key: bytes) -> str | None:
    """The group's id, with which every key of every type begins; None if this one does not."""
    size = int.from_bytes(key[2:4], "big", signed=True)
    if size < 0 or len(key) < 4 + size:
        return None
    try:
        return key[4 : 4 + size].decode()
    except UnicodeDecodeError:
        return None


@dataclass(slots=True)
class ForeignGroup:
    """One of them: whatever is asked of it gets what Apache Kafka says of another kind of group."""

    group_id: str
    is_newer: bool = False

    @property
    def type_name(self) -> str:
        return UNKNOWN

    @property
    def protocol_type(self) -> str:
        return UNKNOWN

    @property
    def state(self) -> ForeignState:
        return ForeignState.UNKNOWN

    @property
    def is_empty(self) -> bool:
        """Never a thing to clear away."""
        return False

    def is_subscribed_to(self, topic: str) -> bool:
        return False

    def refusal(self) -> KafkaError:
        """For a request of another kind of group."""
        if self.is_newer:
            return KafkaError(
                Error.NOT_COORDINATOR,
                f"Group {self.group_id} has records of a newer version than this broker reads.",
            )
        message = f"Group {self.group_id} is not a consumer group."
        return KafkaError(Error.GROUP_ID_NOT_FOUND, message)

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transactional: bool
    ) -> None:
        raise self.refusal()

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if self.is_newer:
            raise self.refusal()

    def check_offset_delete(self) -> None:
        raise self.refusal()

    def check_delete(self) -> None:
        """There may be more of it than its records."""
        if self.is_newer:
            raise self.refusal()
        log.warning(
            "group %r is not deleted: this broker does not know its kind; delete it with the broker"
            " that made it, on this data directory", self.group_id,
        )  # fmt: skip
        raise KafkaError(Error.UNSUPPORTED_VERSION, "This broker does not serve such groups.")

    def expiry_base_ms(self, commit_timestamp_ms: int) -> int | None:
        """Its offsets are the other broker's to expire."""
        return None


@dataclass(slots=True)
class ForeignRecords:
    """The fold of the records that are not ours: the keys of those that are not deleted."""

    other: dict[str, dict[bytes, None]] = field(default_factory=dict)
    newer: dict[str, dict[bytes, None]] = field(default_factory=dict)

    def replay_other(self, state: GroupsState, record: Record) -> None:
        """A record of a type that is not ours."""
        assert record.key is not None
        group_id = group_of(record.key)
        if group_id is None or key_type(record.key) == STREAMS_PARTITIONS:
            return
        if record.value is not None:
            self.other.setdefault(group_id, {})[bytes(record.key)] = None
        elif _drop(self.other, group_id, record.key):
            _forget(state, group_id)

    def replay_newer(self, record: Record) -> None:
        """A record of a type of ours whose value is in a version that we cannot read."""
        assert record.key is not None
        group_id = group_of(record.key)
        if group_id is not None:
            self.newer.setdefault(group_id, {})[bytes(record.key)] = None

    def replay_ours(self, record: Record) -> None:
        """A record that we can read, perhaps in the place of one that we could not."""
        if self.newer and record.key is not None:
            group_id = group_of(record.key)
            if group_id is not None:
                _drop(self.newer, group_id, record.key)

    def groups(self) -> list[ForeignGroup]:
        found = {group_id: ForeignGroup(group_id) for group_id in self.other}
        found |= {group_id: ForeignGroup(group_id, is_newer=True) for group_id in self.newer}
        return list(found.values())


def _drop(keys: dict[str, dict[bytes, None]], group_id: str, key: bytes) -> bool:
    """True when that was the last of the group."""
    of_group = keys.get(group_id, {})
    of_group.pop(bytes(key), None)
    if group_id in keys and not of_group:
        del keys[group_id]
        return True
    return False


def _forget(state: GroupsState, group_id: str) -> None:
    """The last record of a group has gone; offsets that are left stand for a simple group."""
    if not isinstance(state.groups.get(group_id), ForeignGroup):
        return
    del state.groups[group_id]
    if state.offsets.of_group(group_id) or state.offsets.has_open_transactions(group_id):
        state.groups[group_id] = ClassicGroup(group_id, is_stored=True)


def take_ids(state: GroupsState) -> None:
    """The log is read: who is none of ours has its id from now on.

    A group of ours under the same id goes on: then Apache Kafka could not load this partition
    before we did, or the records are leftovers of a kind that it does not know either.
    """
    for group in state.foreign.groups():
        known = state.groups.get(group.group_id)
        is_simple = isinstance(known, ClassicGroup) and known.is_simple
        if group.is_newer:
            log.error(
                "group %r has records in a version that this broker cannot read: they are kept"
                " and the group is not served; a newer broker wrote them and can", group.group_id,
            )  # fmt: skip
        elif known is not None and not is_simple:
            continue
        state.groups[group.group_id] = group


def check_newer(state: GroupsState, group_id: str) -> None:
    """Refuses whatever concerns a group of which only a part could be read."""
    group = state.groups.get(group_id)
    if isinstance(group, ForeignGroup) and group.is_newer:
        raise group.refusal()
