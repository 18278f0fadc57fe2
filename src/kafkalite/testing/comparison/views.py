"""Makes an answer comparable: plain values, canonical names, times and places left out, sorted.

A view holds every field of the answer's version. Lists are sorted by what identifies their
elements, because Apache Kafka answers many of them in the order of a hash table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.visiting import to_values
from kafkalite.records.batch import Compression, read_header, verify
from kafkalite.records.convert import iterate_any
from kafkalite.testing.comparison.names import (
    NODE_ID,
    PRODUCER_ID,
    Names,
    is_node,
    is_nothing,
    kind_of,
)

NOW = "a time about now"
HIDDEN = "…"
DAY_MS = 86_400_000
# Of a machine, a directory or a moment, not of the protocol.
_HIDDEN = frozenset(
    "throttle_time_ms host port cluster_id log_dir total_bytes usable_bytes"
    " finalized_features_epoch".split()
)
_IDENTITY = (
    "name", "topic", "topic_name", "topic_id", "partition_index", "partition", "partition_id",
    "index", "group_id", "transactional_id", "member_id", "key", "resource_type", "resource_name",
    "api_key", "producer_id", "entity", "user", "entity_type", "entity_name", "first_offset",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unknown:
    """An id that has no canonical name yet."""

    kind: str
    actual: Any

    def __repr__(self) -> str:
        return f"<new {self.kind}>"


class View:
    """Makes views of one side's answers. `is_own` says whose name belongs to the comparison."""

    def __init__(self, names: Names, now_ms: Callable[[], int]) -> None:
        self.names = names
        self.now_ms = now_ms

    def of(self, message: Any, version: int) -> dict[str, Any]:
        self._api = message.SPEC.api.name
        self._now = self.now_ms()
        return to_values(message, version, self._one, _sorted)

    def _one(self, value: Any, field: spec.Field) -> Any:
        if field.name in _HIDDEN:
            return HIDDEN
        if is_node(field):
            return self.names.canonical(NODE_ID, value)
        kind = kind_of(field, self._api)
        if kind is not None and not is_nothing(kind, value):
            return self._id(kind, value)
        if field.type == "error":
            return _error_name(value)
        if field.type == "string":
            return self.names.text_in(value)
        if field.type == "records":
            return self._records(value)
        if field.type == "int64" and abs(value - self._now) < DAY_MS:
            return NOW
        return bytes(value) if isinstance(value, memoryview) else value

    def _id(self, kind: str, value: Any) -> Any:
        if self.names.knows(kind, value):
            return self.names.canonical(kind, value)
        return Unknown(kind, value)

    def _records(self, buffer: memoryview) -> list[dict[str, Any]]:
        """Each batch's header and records; the bytes of control batches hold times and ids."""
        found: list[dict[str, Any]] = []
        position = 0
        while position < len(buffer):
            try:
                header = read_header(buffer, position)
                verify(buffer, header)
            except KafkaError:
                found.append({"cut after": position, "bytes": len(buffer) - position})
                break
            found.append(self._batch(buffer, header))
            position += header.size
        return found

    def _batch(self, buffer: memoryview, header: Any) -> dict[str, Any]:
        batch = {
            "base_offset": header.base_offset,
            "last_offset": header.last_offset,
            "size" if header.compression == Compression.NONE else "compressed_size": header.size,
            "magic": header.magic,
            "attributes": header.attributes,
            "leader_epoch": header.partition_leader_epoch,
            "count": header.record_count,
            "max_timestamp": self._time(header.max_timestamp),
            "epoch": header.producer_epoch,
            "sequence": header.base_sequence,
            "producer_id": header.producer_id,
        }
        if header.producer_id >= 0:
            batch["producer_id"] = self._id(PRODUCER_ID, header.producer_id)
        batch["records"] = [
            (each.offset, self._time(each.timestamp), each.key, each.value, each.headers)
            for each in iterate_any(buffer, header)
        ]
        return batch

    def _time(self, value: int) -> Any:
        return NOW if abs(value - self._now) < DAY_MS else value


def _sorted(elements: list[Any]) -> list[Any]:
    return sorted(_merged(elements), key=_identity)


def _merged(elements: Iterable[Any]) -> list[Any]:
    """A topic may be answered in several places, some of its partitions in each."""
    found: list[Any] = []
    for each in elements:
        twin = next((one for one in found if _is_same_topic(one, each)), None)
        if twin is None:
            found.append(each)
        else:
            parts = twin["partitions"] + each["partitions"]
            twin["partitions"] = sorted(parts, key=_identity)
    return found


def _is_same_topic(one: Any, other: Any) -> bool:
    if not (isinstance(one, dict) and "partitions" in one):
        return False
    return all(one[key] == other[key] for key in one if key != "partitions")


def _identity(value: Any) -> str:
    if isinstance(value, dict):
        return f"{[value[key] for key in _IDENTITY if key in value]} {value}"
    return repr(value)


def _error_name(code: int) -> str:
    try:
        return Error(code).name
    except ValueError:
        return str(code)
