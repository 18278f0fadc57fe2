"""Groups as the page shows them, and where one would go on after a reset."""

from __future__ import annotations

from typing import Any

from kafkalite.client.admin import Admin
from kafkalite.client.changes import Changes
from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.client.consuming import EARLIEST, LATEST, Start
from kafkalite.client.groups import Groups
from kafkalite.client.reached import lag_of, positions, reached
from kafkalite.client.survey import survey
from kafkalite.console.given import Given, Mistake
from kafkalite.protocol.errors import Error

PATIENCE_SECONDS = 5.0
PLACES = ("beginning", "end", "offset", "back", "time")
MOST_TOPICS = 100


def listed(cluster: Cluster, given: Given) -> dict[str, Any]:
    found = survey(cluster, with_settings=False)
    rows = [
        {
            "name": group.group_id, "kind": group.kind, "type": group.protocol_type,
            "state": group.state, "members": len(group.members),
            "topics": len({topic for topic, _ in group.committed}), "lag": lag_of(found, group),
            "coordinator": group.coordinator,
        }
        for group in sorted(found.groups.values(), key=lambda each: each.group_id)
    ]  # fmt: skip
    return {"groups": rows, "at_ms": found.at_ms, "missing": found.missing}


def one(cluster: Cluster, given: Given) -> dict[str, Any]:
    name = given.name("name")
    found = survey(cluster, with_settings=False)
    group = found.groups.get(name)
    if group is None:
        raise ClientFailed(f"there is no group {name}, or it may not be seen",
                           Error.GROUP_ID_NOT_FOUND)  # fmt: skip
    return {
        "name": name, "kind": group.kind, "type": group.protocol_type, "state": group.state,
        "protocol": group.protocol, "coordinator": group.coordinator, "lag": lag_of(found, group),
        "members": [
            {"client": each.client_id, "host": each.host,
             "partitions": sum(map(len, each.assigned.values())), "topics": sorted(each.assigned)}
            for each in group.members
        ],
        "rows": [
            [each.topic, each.partition, each.committed, each.ends, each.lag, each.member]
            for each in reached(found, group)
        ],
        "at_ms": found.at_ms, "missing": found.missing,
    }  # fmt: skip


def reset(cluster: Cluster, given: Given) -> dict[str, Any]:
    """Where it would go on, by partition; and then, unless it is a preview, it does."""
    name, topics = given.name("name"), given.names("topics")
    if not 0 < len(topics) <= MOST_TOPICS:
        raise Mistake(f"topics: expected 1 to {MOST_TOPICS}")
    start, notes = _start(given), list[str]()
    offsets = {
        place: offset
        for topic in topics
        for place, offset in positions(
            cluster, topic, start, PATIENCE_SECONDS, notes.append
        ).items()
    }
    before = Groups(cluster, PATIENCE_SECONDS).committed(name)
    is_preview = given.flag("preview")
    if not is_preview:
        Changes(Admin(cluster, timeout_s=PATIENCE_SECONDS)).commit(name, offsets)
    rows = [
        [topic, index, before.get((topic, index)), offset]
        for (topic, index), offset in sorted(offsets.items())
    ]
    return {"rows": rows, "preview": is_preview, "notes": notes}


def _start(given: Given) -> Start:
    place = given.choice("to", PLACES)
    if place == "beginning":
        return Start(timestamp=EARLIEST)
    if place == "end":
        return Start(timestamp=LATEST)
    if place == "time":
        return Start(timestamp=given.number("time"))
    offset = given.number("offset", low=int(place == "back"))
    return Start(offset=-offset if place == "back" else offset)
