"""`kafka-transactions find-hanging`: what is open in partitions, and no coordinator will end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ListTransactionsRequest
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, TerseFailure, refused
from kafkalite.tools.java_maps import (
    TopicPartition,
    in_map_order,
    in_map_order_of,
    partitions_in_map_order,
)
from kafkalite.tools.running import print_table
from kafkalite.tools.topic_reports import all_topics, described
from kafkalite.tools.transaction_questions import (
    describe_producers,
    describe_transaction,
    failed,
    list_transactions,
)

_AT_ONCE = 500
_MINUTE_MS = 60_000
_USUAL_MINUTES = 15
_HEADS = (
    "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
    "LastTimestamp", "Duration(min)",
)  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Open:
    place: TopicPartition
    producer: Any


def find_hanging(asking: Asking, given: dict[str, Any]) -> None:
    topic: str | None = given.get("topic")
    index, broker = given.get("partition"), given.get("broker-id")
    if topic is None and broker is None:
        raise TerseFailure(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope "
            "of the search"
        )
    if index is not None and topic is None:
        raise TerseFailure("The --partition argument requires --topic to be provided")
    if topic is None or index is None:
        places = _places(asking, topic, broker)
    else:
        places = [(topic, index)]
    oldest_ms = _MINUTE_MS * given.get("max-transaction-timeout", _USUAL_MINUTES)
    candidates = [
        each for some in _some(places) for each in _candidates(asking, some, broker, oldest_ms)
    ]
    _print(_hanging(asking, candidates) if candidates else [])


def _some(whole: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(whole), _AT_ONCE):
        yield whole[start : start + _AT_ONCE]


def _places(asking: Asking, topic: str | None, broker: int | None) -> list[TopicPartition]:
    try:
        names = [topic] if topic else in_map_order(each.name for each in all_topics(asking))
    except Failure as failure:
        raise failed("Failed to list topics", failure) from None
    found = []
    for some in _some(names):
        try:
            topics = described(asking, in_map_order(some))
        except Failure as failure:
            raise failed(f"Failed to describe {len(some)} topics", failure) from None
        found += [
            (each.topic, each.partition)
            for one in topics
            for each in one.partitions
            if broker is None or broker in each.replicas
        ]
    return found


def _candidates(
    asking: Asking, places: Sequence[TopicPartition], broker: int | None, oldest_ms: int
) -> Iterator[_Open]:
    """What is open for longer than any transaction may be."""
    where = "Optional.empty" if broker is None else f"Optional[{broker}]"
    what = f"Failed to describe producers for {len(places)} partitions on broker {where}"
    try:
        found = describe_producers(asking, places, broker)
    except Failure as failure:
        raise failed(what, failure) from None
    now_ms = int(1000 * time.time())
    for place in partitions_in_map_order(found):
        producers = found[place]
        if isinstance(producers, Failure):
            raise failed(what, producers)
        for each in producers:
            if each.current_txn_start_offset >= 0 and now_ms - each.last_timestamp > oldest_ms:
                yield _Open(place, each)


def _hanging(asking: Asking, candidates: Sequence[_Open]) -> list[_Open]:
    """Those that are in no transaction of which a coordinator knows."""
    by_producer: dict[int, list[_Open]] = {}
    for each in candidates:
        by_producer.setdefault(each.producer.producer_id, []).append(each)
    names = _transactional_ids(asking, list(by_producer))
    ongoing = {name: _ongoing(asking, name, len(names)) for name in names.values()}
    return [
        each
        for producer in in_map_order_of(by_producer, lambda number: number ^ number >> 32)
        for each in by_producer[producer]
        if producer not in names or each.place not in ongoing[names[producer]]
    ]


def _transactional_ids(asking: Asking, producers: list[int]) -> dict[int, str]:
    try:
        found = list_transactions(asking, ListTransactionsRequest(producer_id_filters=producers))
    except Failure as failure:
        what = f"Failed to list transactions for {len(producers)} producers"
        raise failed(what, failure) from None
    listed = (each for broker in found for each in found[broker])
    return {each.producer_id: each.transactional_id for each in listed}


def _ongoing(asking: Asking, name: str, count: int) -> set[TopicPartition]:
    """The partitions for which the coordinator has a marker yet to write."""
    try:
        _, state = describe_transaction(asking, name)
    except Failure as failure:
        if failure.java == refused(Error.TRANSACTIONAL_ID_NOT_FOUND).java:
            return set()
        raise failed(f"Failed to describe {count} transactions", failure) from None
    return {(each.topic, index) for each in state.topics for index in each.partitions}


def _print(hanging: Sequence[_Open]) -> None:
    now_ms = int(1000 * time.time())
    rows = [
        tuple(map(str, (
            *each.place, each.producer.producer_id, each.producer.producer_epoch,
            max(each.producer.coordinator_epoch, -1), each.producer.current_txn_start_offset,
            each.producer.last_timestamp, int((now_ms - each.producer.last_timestamp) / _MINUTE_MS),
        )))
        for each in hanging
    ]  # fmt: skip
    print_table([_HEADS, *rows])
