"""After which answers two brokers are not in the same state any more, so that comparing them ends.

The rows of UNLIKE are about answers that are alike; docs/generated/differences.md shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalite.testing.comparison.comparing import Difference
from kafkalite.testing.comparison.conditions import names_a_protocol_twice
from kafkalite.testing.comparison.differences import explain


def parts_states(difference: Difference) -> bool:
    row = explain(difference)
    return row is not None and row.parts_states


@dataclass(frozen=True, slots=True)
class Unlike:
    """Two that answer alike are not in the same state afterwards. `holds` is given the request, its
    answer and the requests before it."""

    api: str
    reason: str
    holds: Callable[[Any, Any, Sequence[Any]], bool]


def _names_who_never_joined(asked: Any, answer: Any, before: Sequence[Any]) -> bool:
    return answer.get("error_code") == "UNKNOWN_MEMBER_ID" and any(
        one.SPEC.name == "ConsumerGroupHeartbeatRequest" and one.group_id == asked.group_id
        for one in before
    )


UNLIKE: tuple[Unlike, ...] = (
    Unlike(
        "Fetch",
        "A topic id of zeros, as above, that a fetch session keeps makes a later answer fail.",
        lambda asked, answer, before: any(
            not topic.topic and not any(topic.topic_id) for topic in asked.topics
        ),
    ),
    Unlike(
        "WriteTxnMarkers",
        "A marker of a producer whose id is below -1, as above, among markers that both refuse.",
        lambda asked, answer, before: any(marker.producer_id < -1 for marker in asked.markers),
    ),
    Unlike(
        "ConsumerGroupHeartbeat",
        "A member that subscribes by a pattern, as above, may be told the same at first.",
        lambda asked, answer, before: bool(asked.subscribed_topic_regex),
    ),
    Unlike(
        "JoinGroup",
        "A member that names a protocol twice, as above, is counted twice where others join it.",
        lambda asked, answer, before: names_a_protocol_twice(asked),
    ),
    Unlike(
        "JoinGroup",
        "Somebody who never was a member asks by the classic protocol to join a group of the"
        " consumer protocol that has no members: Apache Kafka forgets the group until it reads its"
        " log again; kafkalite keeps it, because its offsets have to belong to one.",
        _names_who_never_joined,
    ),
)


def leaves_unlike(asked: Any, answer: Any, before: Sequence[Any]) -> bool:
    """Whether the two are in unlike states after this request, answered alike."""
    return isinstance(answer, dict) and any(
        row.api == asked.SPEC.api.name and row.holds(asked, answer, before) for row in UNLIKE
    )
