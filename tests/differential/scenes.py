"""Pairs of answers that differ as a row of the table says, to plant further differences in.

Of rows that speak of both answers at once: in a pair that is alike they let nothing pass, whatever
is planted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol import spec
from kafkalite.protocol.messages import ListOffsetsRequest, message_class
from kafkalite.records.batch import DELETE_HORIZON_BIT, HEADER_BYTES
from kafkalite.testing.comparison.conditions import (
    MAX_TIMESTAMP,
)
from tests.differential.odd_requests import ODD_REQUESTS
from tests.differential.replies import LONG_AGO_MS, NOW_MS

Change = Callable[[Any, Any], None]


@dataclass(frozen=True, slots=True)
class Scene:
    """`part` makes two like views of the API's last stable version those that the row is about."""

    row: str
    api: str
    part: Change
    asked: Any


def _plain(api: str) -> Any:
    return message_class(f"{api}Request")()


def _asked_for_times(timestamp: int = LONG_AGO_MS) -> ListOffsetsRequest:
    partitions = [
        ListOffsetsRequest.Partition(partition_index=index, timestamp=timestamp)
        for index in range(100)
    ]
    return ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name="a", partitions=partitions)])


def _behind_the_start(ours: Any, theirs: Any) -> None:
    found, none = (each["topics"][0]["partitions"][0] for each in (ours, theirs))
    found.update(timestamp=LONG_AGO_MS + 5, offset=7, leader_epoch=0)
    none.update(timestamp=-1, offset=-1, leader_epoch=-1)


def _latest_of_now(ours: Any, theirs: Any) -> None:
    for view, offset in ((ours, 5), (theirs, 6)):
        view["topics"][0]["partitions"][0].update(timestamp=NOW_MS, offset=offset)


def _compacted(ours: Any, theirs: Any) -> None:
    """The first batch of each, with a hole; another first time, and so another size."""
    for view, less in ((ours, 3), (theirs, 0)):
        batch = view["responses"][0]["partitions"][0]["records"][0]
        batch["last_offset"] = batch["base_offset"] + batch["count"] + 4
        batch["base_timestamp"] -= less
        batch["size"] -= less


def _cut(ours: Any, theirs: Any) -> None:
    """The same, and the last batch of each is cut where the answer is as long as it may be."""
    _compacted(ours, theirs)
    for view, less in ((ours, 3), (theirs, 0)):
        records = view["responses"][0]["partitions"][0]["records"]
        records[-1] = {"cut after": 300 - less, "bytes": 50 + less}


def _compressed_with_a_horizon(ours: Any, theirs: Any) -> None:
    """The compressed batch of each, with the time from which on a deletion may be forgotten."""
    for view, more in ((ours, 3), (theirs, 0)):
        batch = view["responses"][0]["partitions"][0]["records"][1]
        batch["attributes"] |= DELETE_HORIZON_BIT
        batch["base_timestamp"] = NOW_MS + more
        batch["compressed_size"] += more


def _kept_marker(ours: Any, theirs: Any) -> None:
    kept, emptied = (
        each["responses"][0]["partitions"][0]["records"][3] for each in (ours, theirs)
    )
    del kept["records"][1:]
    kept.update(count=1, attributes=kept["attributes"] | DELETE_HORIZON_BIT)
    emptied.update(count=0, records=[], size=HEADER_BYTES, base_timestamp=-1)


def _found_marker(ours: Any, theirs: Any) -> None:
    for view, offset in ((ours, 3), (theirs, 5)):
        found = view["topics"][0]["partitions"][0]
        found.update(timestamp=NOW_MS - 100_000 + offset, offset=offset)


def _found_marker_alone(ours: Any, theirs: Any) -> None:
    _found_marker(ours, theirs)
    theirs["topics"][0]["partitions"][0].update(timestamp=-1, offset=-1, leader_epoch=-1)


def _marked_nothing(ours: Any, theirs: Any) -> None:
    ours["markers"][0]["topics"] = []
    del theirs["markers"][0]


def _without_parts(ours: Any, theirs: Any) -> None:
    """One side alone repeats the first topic, without anything in it."""
    ours["topics"][0]["partitions"] = []
    del theirs["topics"][0]


def _listed_at_once(ours: Any, theirs: Any) -> None:
    ours["groups"][1].update(protocol_type="", group_state="Empty")
    del theirs["groups"][1]


def _described_at_once(ours: Any, theirs: Any) -> None:
    ours["groups"][0].update(group_state="PreparingRebalance")
    for member in ours["groups"][0]["members"]:
        member["member_assignment"] = b""
    theirs["groups"][0].update(
        group_state="Dead", members=[], protocol_type="", error_code="GROUP_ID_NOT_FOUND"
    )


def _written_without_epoch(ours: Any, theirs: Any) -> None:
    taken, failed = (
        each["responses"][0]["partition_responses"][0] for each in (ours, theirs)
    )
    taken.update(error_code="NONE", base_offset=5)
    failed.update(error_code="UNKNOWN_SERVER_ERROR", base_offset=-1)


def _dropped_versions(ours: Any, theirs: Any) -> None:
    dropped = spec.api(0).dropped
    for view, lowest in ((ours, dropped.start), (theirs, dropped.stop)):
        view["api_keys"][0].update(api_key=0, min_version=lowest)


SCENES: tuple[Scene, ...] = (
    Scene("time before the start", "ListOffsets", _behind_the_start, _asked_for_times()),
    Scene(
        "latest of times of this moment", "ListOffsets", _latest_of_now,
        _asked_for_times(MAX_TIMESTAMP),
    ),
    Scene("what compaction left of a batch", "Fetch", _compacted, _plain("Fetch")),
    Scene("cut behind what compaction left", "Fetch", _cut, _plain("Fetch")),
    Scene("size by codec", "Fetch", _compressed_with_a_horizon, _plain("Fetch")),
    Scene("marker that compaction keeps", "Fetch", _kept_marker, _plain("Fetch")),
    Scene(
        "marker that compaction keeps, found by its time", "ListOffsets", _found_marker,
        _asked_for_times(),
    ),
    Scene(
        "marker that compaction keeps, found by its time", "ListOffsets", _found_marker_alone,
        _asked_for_times(MAX_TIMESTAMP),
    ),
    Scene(
        "marker of nobody, beside one of nothing", "WriteTxnMarkers", _marked_nothing,
        ODD_REQUESTS["WriteTxnMarkers"]["a producer below -1, and nothing"],
    ),
    *(
        Scene("topic without partitions", api, _without_parts, asked)
        for api in ("TxnOffsetCommit", "OffsetDelete")
        for asked in ODD_REQUESTS[api].values()
    ),
    Scene("unrecorded group", "ListGroups", _listed_at_once, _plain("ListGroups")),
    Scene(
        "unrecorded group, described", "DescribeGroups", _described_at_once,
        _plain("DescribeGroups"),
    ),
    Scene(
        "no epoch, no offset", "Produce", _written_without_epoch,
        ODD_REQUESTS["Produce"]["an id without an epoch"],
    ),
    Scene("old versions", "ApiVersions", _dropped_versions, _plain("ApiVersions")),
)  # fmt: skip
