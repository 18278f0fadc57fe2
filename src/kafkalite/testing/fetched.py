"""Answers of fetches that give less than they could, or say that a partition has moved.

Owns how such an answer is made of a whole one, in versions with batches (4 and later). Reads the
first batch's head and nothing of its records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from kafkalite.handlers.call import Call
from kafkalite.handlers.leaders import current_leader, endpoints
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchResponse
from kafkalite.server.terms import Outcome
from kafkalite.testing.chosen import World
from kafkalite.testing.understanding import Request, reply_of, response_in

BATCHES_SINCE = 4
IDS_SINCE = 13
LEADERS_SINCE = 16
_HEAD = struct.Struct(">qi")  # of a batch: base offset, and the length of what comes behind
_LAST_DELTA_AT = 23
ENTIRE_SESSION = (0, -1)  # epochs of fetches that name all that they want

Served = tuple[str, FetchResponse.Partition]  # with its topic's name


def served(asked: Request, response: Any, world: World) -> Iterator[Served]:
    """What there are records of, in the order of the answer."""
    for topic in response.responses:
        is_named = asked.version < IDS_SINCE
        name = topic.topic if is_named else world.known.topic_name(bytes(topic.topic_id))
        for partition in topic.partitions:
            if partition.records and name:
                yield name, partition


def first_offset(partition: FetchResponse.Partition) -> int:
    offset: int = _HEAD.unpack_from(bytes(partition.records))[0]
    return offset


def has_several_batches(found: list[Served]) -> bool:
    return len(found) > 1 or any(
        _first_batch_bytes(partition) < len(partition.records) for _, partition in found
    )


def _first_batch_bytes(partition: FetchResponse.Partition) -> int:
    length: int = _HEAD.unpack_from(bytes(partition.records))[1]
    return _HEAD.size + length


def shortened(asked: Request, outcome: Outcome) -> Outcome:
    """The first batch of the first partition that has any, as with a small `max_bytes`."""
    response = response_in(asked, outcome)
    if response is None:
        return outcome
    is_first = True
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.records:
                _keep(partition, _first_batch_bytes(partition) if is_first else 0)
                is_first = False
    return reply_of(asked, response)


def _keep(partition: FetchResponse.Partition, size: int) -> None:
    """What was aborted behind that is told when it is fetched."""
    records = bytes(partition.records)[:size]
    partition.records = records
    end = -1
    if records:
        delta = int.from_bytes(records[_LAST_DELTA_AT : _LAST_DELTA_AT + 4])
        end = _HEAD.unpack_from(records)[0] + delta
    aborted = partition.aborted_transactions
    if aborted is not None:
        partition.aborted_transactions = [each for each in aborted if each.first_offset <= end]


def emptied(asked: Request, outcome: Outcome) -> Outcome:
    """What KIP-219 has a throttled fetch told: no partition at all, and of a new session nothing
    either."""
    response = response_in(asked, outcome)
    if response is None:
        return outcome
    response.responses = []
    if asked.message.session_epoch in ENTIRE_SESSION:
        response.session_id = 0
    return reply_of(asked, response)


def moved(asked: Request, outcome: Outcome, world: World) -> Outcome:
    """The first partition that has records is led elsewhere, as far as this broker knows."""
    response, broker = response_in(asked, outcome), world.broker()
    if response is None or broker is None:
        return outcome
    for topic in response.responses:
        for at, partition in enumerate(topic.partitions):
            if partition.records:
                topic.partitions[at] = refused = FetchResponse.Partition(
                    partition_index=partition.partition_index,
                    error_code=Error.NOT_LEADER_OR_FOLLOWER, high_watermark=-1, records=b"",
                )  # fmt: skip
                if asked.version >= LEADERS_SINCE:
                    leader = refused.current_leader
                    leader.leader_id, leader.leader_epoch = current_leader(
                        broker.context, topic.topic, bytes(topic.topic_id), refused.partition_index
                    )
                    endpoint = FetchResponse.NodeEndpoint
                    response.node_endpoints = named(asked, world, endpoint, {leader.leader_id})
                return reply_of(asked, response)
    return outcome


def named(asked: Request, world: World, endpoint: Any, node_ids: set[int]) -> list[Any]:
    """Brokers of the cluster, as this client reaches them."""
    broker = world.broker()
    if broker is None:
        return []
    header = asked.header
    call = Call(
        header.request_api_key, asked.version, header.correlation_id, header.client_id,
        asked.connection,
    )  # fmt: skip
    found = endpoints(broker.context, call, broker.metadata.image.brokers)
    return [
        endpoint(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in found
    ]
