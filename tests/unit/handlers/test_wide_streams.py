"""Heartbeats of streams groups with thousands of names in one place: no turn is long for them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import StreamsGroupHeartbeatRequest
from kafkalite.sim.effort import MOST_CALLS, CountingClock, Turn
from tests.unit.handlers.counted import begun, broker_with
from tests.unit.handlers.streams_desk import joining, subtopology, topic, topology
from tests.unit.handlers.whole_broker import WholeBroker

MANY = 4_000
NAMES = [f"t-{number}" for number in range(MANY)]
Request = StreamsGroupHeartbeatRequest


@pytest.fixture(scope="module")
def broker() -> WholeBroker:
    return broker_with(["t"])


def told(broker: WholeBroker, request: Request) -> tuple[Any, Turn]:
    """The answer, and the heaviest turn until it is there."""
    clock = broker.clock
    assert isinstance(clock, CountingClock)
    begun(broker, joining("first"), 0)  # has code generated
    clock.advance(300)
    clock.begin()
    came = begun(broker, request, 0)
    clock.advance(3_000)
    return came(), clock.heaviest


def inner(count: int = 0) -> list[Request.TopicInfo]:
    """Which cannot be made: making so many is another's matter."""
    topics = [topic(name, count, {"cleanup.policy": "compact"}) for name in NAMES[:2_000]]
    for one in topics:
        one.replication_factor = 3
    return topics


WIDE = {
    "sources": topology(subtopology(source_topics=NAMES)),
    "changelogs": topology(subtopology(state_changelog_topics=inner())),
    "sinks": topology(subtopology(repartition_sink_topics=NAMES)),
    "repartitioned": topology(subtopology(repartition_source_topics=inner(1))),
    "together": topology(
        subtopology(copartition_groups=[Request.CopartitionGroup(source_topics=[0] * MANY)])
    ),
    "groups": topology(
        subtopology(copartition_groups=[Request.CopartitionGroup(source_topics=[0])] * MANY)
    ),
    "names that are none": topology(subtopology(source_topics=[f"{name}/" for name in NAMES])),
}


@pytest.mark.parametrize("what", WIDE)
def test_no_turn_is_long(broker: WholeBroker, what: str) -> None:
    request = joining("m", WIDE[what])
    request.group_id = what
    answer, heaviest = told(broker, request)
    assert answer.error_code in (Error.NONE, Error.STREAMS_INVALID_TOPOLOGY), answer
    assert 500 < heaviest.calls < MOST_CALLS, heaviest
