"""What the handlers of transactions share: errors as old clients know them, topics as pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kafkalite.handlers.call import Call
from kafkalite.protocol.errors import Error, KafkaError


class NamedPartitions(Protocol):
    """A topic of a request with the indexes of its partitions."""

    name: str
    partitions: list[int]


def error_for(call: Call, error: KafkaError, fenced_since_version: int) -> Error:
    """The error code; clients of before PRODUCER_FENCED know an invalid epoch only."""
    if error.code == Error.PRODUCER_FENCED and call.version < fenced_since_version:
        return Error.INVALID_PRODUCER_EPOCH
    return Error(error.code)


def partitions_of(topics: Iterable[NamedPartitions]) -> tuple[tuple[str, int], ...]:
    return tuple((topic.name, index) for topic in topics for index in topic.partitions)


def code_of(call: Call, answer: object, fenced_since_version: int) -> Error:
    """The error code of a coordinator's answer, whatever else the answer is."""
    if isinstance(answer, KafkaError):
        return error_for(call, answer, fenced_since_version)
    return Error.NONE
