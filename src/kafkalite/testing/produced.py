"""Replies to what was produced that name an error, of records that are there or are not.

Owns how such a reply is made; whether an error may be named there is legal.py's.
"""

from __future__ import annotations

from typing import Any

from kafkalite.handlers.leaders import current_leader
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ProduceResponse
from kafkalite.server.error_reply import error_reply
from kafkalite.server.terms import Outcome
from kafkalite.testing.chosen import World
from kafkalite.testing.fetched import named
from kafkalite.testing.understanding import Request, reply_of, response_in

LEADERS_SINCE = 10
NO_OFFSET = -1


def unappended(asked: Request, error: Error, world: World) -> Outcome:
    """Nothing is there of any partition."""
    response: Any = error_reply(asked.message, asked.version, error)
    leaders: set[int] = set()
    for topic in response.responses:
        for partition in topic.partition_responses:
            partition.base_offset = NO_OFFSET
            if error is Error.NOT_LEADER_OR_FOLLOWER and asked.version >= LEADERS_SINCE:
                _name_leader(topic, partition, world)
                leaders.add(partition.current_leader.leader_id)
    if leaders:
        endpoint = ProduceResponse.NodeEndpoint
        response.node_endpoints = named(asked, world, endpoint, leaders)
    return reply_of(asked, response)


def _name_leader(topic: Any, partition: Any, world: World) -> None:
    broker = world.broker()
    if broker is not None:
        leader = partition.current_leader
        leader.leader_id, leader.leader_epoch = current_leader(
            broker.context, topic.name, bytes(topic.topic_id), partition.index
        )


def appended(asked: Request, outcome: Outcome, error: Error) -> Outcome:
    """What was appended is, and its offset is told; what was refused was."""
    response = response_in(asked, outcome)
    if response is None:
        return outcome
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code == Error.NONE:
                partition.error_code = error
    return reply_of(asked, response)
