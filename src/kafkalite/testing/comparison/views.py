"""Makes an answer comparable: plain values, and canonical names for what brokers choose.

A view holds every field of the answer's version, every element of its lists in the order in which
they came, and every batch and record in it. Nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkalite.protocol import spec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.traversal import to_values
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


@dataclass(frozen=True, slots=True)
class Unknown:
    """An id that has no canonical name yet."""

    kind: str
    actual: Any

    def __repr__(self) -> str:
        return f"<new {self.kind}>"


class View:
    """Makes views of one side's answers."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def of(self, message: Any, version: int) -> dict[str, Any]:
        self._api = message.SPEC.api.name
        return to_values(message, version, self._one)

    def _one(self, value: Any, field: spec.Field) -> Any:
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
        return bytes(value) if isinstance(value, memoryview) else value

    def _id(self, kind: str, value: Any) -> Any:
        if self.names.knows(kind, value):
            return self.names.canonical(kind, value)
        return Unknown(kind, value)

    def _records(self, buffer: memoryview) -> list[dict[str, Any]]:
        """Each batch's header and records."""
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
            "base_timestamp": header.base_timestamp,
            "max_timestamp": header.max_timestamp,
            "epoch": header.producer_epoch,
            "sequence": header.base_sequence,
            "producer_id": header.producer_id,
        }
        if header.producer_id >= 0:
            batch["producer_id"] = self._id(PRODUCER_ID, header.producer_id)
        batch["records"] = [
            {
                "offset": each.offset,
                "timestamp": each.timestamp,
                "key": each.key,
                "value": each.value,
                "headers": [list(one) for one in each.headers],
            }
            for each in iterate_any(buffer, header)
        ]
        return batch


def _error_name(code: int) -> str:
    try:
        return Error(code).name
    except ValueError:
        return str(code)
