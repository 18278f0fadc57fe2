"""Where responses tell the addresses of brokers, known from the specs; and other ones put there.

That is every struct of a response with a host and a port which, itself or one level up, names the
node whose they are. An address without a node is a client's own (of Kafka Streams) and stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from kafkalite.protocol import spec

_NODE = ("node_id", "broker_id", "leader_id", "controller_id")


@dataclass(slots=True)
class Named:
    """The struct that holds `host` and `port`, and the id of the node that listens there."""

    holder: Any
    node_id: int

    @property
    def address(self) -> tuple[str, int]:
        return self.holder.host, self.holder.port


def addresses(message: Any) -> Iterator[Named]:
    """All brokers that a response names; what stands for no broker has no port."""
    if has_addresses(message.SPEC.name):
        yield from (each for each in _walk(message, message.SPEC.root, None) if each.address[1] > 0)


@cache
def has_addresses(message: str) -> bool:
    """Whether the message of this name has a place for an address in any version."""
    return _places(spec.message(message).root, has_outer=False)


def _places(struct: spec.Struct, *, has_outer: bool) -> bool:
    has_own = _node_field(struct) is not None
    return (_is_address(struct) and (has_own or has_outer)) or any(
        _places(field.struct, has_outer=has_own)
        for field in struct.fields
        if field.struct is not None
    )


def _walk(value: Any, struct: spec.Struct, outer: int | None) -> Iterator[Named]:
    name = _node_field(struct)
    own = getattr(value, name) if name else None
    node_id = outer if own is None else own
    if _is_address(struct) and node_id is not None:
        yield Named(value, node_id)
    for field in struct.fields:
        if field.struct is None:
            continue
        inner = getattr(value, field.name)
        for each in inner or () if field.is_array else [inner]:
            if each is not None:
                yield from _walk(each, field.struct, own)


def _is_address(struct: spec.Struct) -> bool:
    names = {field.name for field in struct.fields}
    return "host" in names and "port" in names


def _node_field(struct: spec.Struct) -> str | None:
    names = {field.name for field in struct.fields}
    return next((each for each in _NODE if each in names), None)

