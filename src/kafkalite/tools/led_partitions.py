"""What the leaders of partitions are asked, each again until it answers or the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, refused, timed_out, timeout
from kafkalite.tools.java_maps import TopicPartition

_PAUSE_S = 0.1
MOVING = frozenset((
    Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NOT_LEADER_OR_FOLLOWER, Error.LEADER_NOT_AVAILABLE,
))  # fmt: skip

Outcome = TypeVar("Outcome")


def ask_leaders(
    asking: Asking, call: str, places: Collection[TopicPartition],
    ask: Callable[[int, list[TopicPartition]], Mapping[TopicPartition, Outcome | Failure]],
    only: int | None = None,
) -> dict[TopicPartition, Outcome | Failure]:
    """What became of each partition; `ask` leaves out those that are to be looked for again.

    only: a broker that is asked whoever leads them."""
    outcomes: dict[TopicPartition, Outcome | Failure] = {}
    deadline, tries = time.monotonic() + asking.timeout_s, 0
    while missing := [place for place in places if place not in outcomes]:
        tries += 1
        leaders = (
            _leaders(asking, call, missing) if only is None else dict.fromkeys(missing, only)
        )
        outcomes |= {place: each for place, each in leaders.items() if isinstance(each, Failure)}
        for leader in sorted({each for each in leaders.values() if isinstance(each, int)}):
            outcomes |= ask(leader, [place for place in missing if leaders.get(place) == leader])
        if time.monotonic() >= deadline:
            late = _late(f"{call}(api=METADATA)", tries) if only is None else timed_out(call)
            return outcomes | {place: late for place in missing if place not in outcomes}
        if len(outcomes) < len(places):
            time.sleep(_PAUSE_S)
    return outcomes


def _leaders(
    asking: Asking, call: str, places: Collection[TopicPartition]
) -> dict[TopicPartition, int | Failure]:
    """Those that are known, and why some never will be."""
    topics = [MetadataRequest.Topic(name=name) for name in dict.fromkeys(t for t, _ in places)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    found: dict[TopicPartition, int | Failure] = {}
    for topic in asking.any(call, request).topics:
        if topic.error_code == Error.INVALID_TOPIC_EXCEPTION:
            found |= {place: invalid_topic(place) for place in places if place[0] == topic.name}
        for each in topic.partitions:
            place = topic.name, each.partition_index
            if place in places and each.leader_id >= 0:
                found[place] = each.leader_id
    return found


def invalid_topic(place: TopicPartition) -> Failure:
    """Nobody need look for it."""
    return refused(
        Error.INVALID_TOPIC_EXCEPTION,
        f"Failed to fetch metadata for partition {place[0]}-{place[1]} due to invalid topic "
        f"`{place[0]}`",
    )


def _late(call: str, tries: int) -> Failure:
    """No leader was found in time."""
    now_ms = int(1000 * time.time())
    return timeout(
        f"Call(callName={call}, deadlineMs={now_ms}, tries={tries}, "
        f"nextAllowedTryMs={now_ms + 1000}) timed out at {now_ms} after {tries} attempt(s)"
    )
