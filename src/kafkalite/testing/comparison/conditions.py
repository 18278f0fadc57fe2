"""Conditions of rows of the table of allowed differences: on what was asked, and on both answers.

Each speaks of one difference. Where a value has not the form that a condition is about, the row
does not hold; conditions need not ask.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from kafkalite.protocol import spec
from kafkalite.records.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
)
from kafkalite.testing.comparison.comparing import ABSENT, Difference

# Two brokers that are asked at once do the same within this time, on a busy machine too.
CLOSE_MS = 10_000
HOUR_MS = 3_600_000
MAX_TIMESTAMP = -3  # asked of ListOffsets
_TELLS_OF_NO_GROUP = 6  # version of DescribeGroups; before it a group that is not there is dead
_VARINT_BYTES = 10
_PRODUCER_ID, _PRODUCER_EPOCH = 9, 10  # in a batch's header
SILENT = "answer: an answer | no answer in time"
CLOSED = "answer: an answer | the broker closed the connection"
# States of a classic group of which nothing needs to have been recorded.
_UNRECORDED = frozenset(("Empty", "PreparingRebalance", "CompletingRebalance"))


def two_texts(difference: Difference) -> bool:
    both = (difference.ours, difference.theirs)
    return all(isinstance(each, str) and each for each in both)


def of_this_moment(difference: Difference) -> bool:
    """Times that the two brokers took from their clocks for the same."""
    return _are_of_this_moment(difference.ours, difference.theirs)


def _are_of_this_moment(*both: Any) -> bool:
    if not all(type(each) is int for each in both):
        return False
    now = time.time() * 1000
    is_new = all(-HOUR_MS <= each - now <= CLOSE_MS for each in both)
    return is_new and abs(both[0] - both[1]) <= CLOSE_MS


def is_latest_of_this_moment(difference: Difference) -> bool:
    """An answer to the question for the latest time, which a broker's clock told."""
    index, _ = difference.beside("partition_index")
    is_asked = any(
        (partition.partition_index, partition.timestamp) == (index, MAX_TIMESTAMP)
        for topic in difference.asked.topics
        for partition in topic.partitions
    )
    is_there = min(difference.ours, difference.theirs) >= 0
    return is_asked and is_there and _are_of_this_moment(*difference.beside("timestamp"))


def found_behind_the_start(difference: Difference) -> bool:
    """An answer to a time, of a log that does not begin at 0 any more."""
    ours, theirs = difference.around[-1]
    is_found = ours["offset"] > 0 and ours.get("leader_epoch", 0) >= 0
    is_none = theirs["offset"] == theirs["timestamp"] == theirs.get("leader_epoch", -1) == -1
    times = [
        partition.timestamp
        for topic in difference.asked.topics
        for partition in topic.partitions
        if partition.partition_index == ours["partition_index"]
    ]
    return bool(is_found and is_none and any(0 <= each <= ours["timestamp"] for each in times))


def times_of_a_broker(difference: Difference) -> bool:
    """In a batch whose times the broker set: by the topic's setting, or because it wrote it."""
    batch = next(one for one, _ in reversed(difference.around) if "attributes" in one)
    bits = LOG_APPEND_TIME_BIT | CONTROL_BIT
    if difference.path.endswith(".base_timestamp"):
        bits |= DELETE_HORIZON_BIT
    is_ours = batch["attributes"] & bits
    return bool(is_ours) and of_this_moment(difference)


def refused(difference: Difference) -> bool:
    ours, theirs = difference.beside("error_code")
    return bool(ours == theirs != "NONE")


def only_unrecorded(difference: Difference) -> bool:
    ours = difference.ours
    return (
        difference.theirs is ABSENT
        and not ours["protocol_type"]
        and ours.get("group_state", "Empty") == "Empty"
    )


def asked_for_nothing(difference: Difference) -> bool:
    """An element without parts that one side lacks, of which the request named no part either."""
    element = difference.theirs if difference.ours is ABSENT else difference.ours
    if not isinstance(element, dict) or not _is_hollow(element):
        return False
    return any(
        one.get("name") == element["name"] and _is_hollow(one)
        for one in _structs(difference.asked)
    )


def _is_hollow(fields: dict[str, Any]) -> bool:
    lists = [each for each in fields.values() if isinstance(each, list)]
    return bool(lists) and not any(lists)


def _structs(value: Any) -> Iterator[dict[str, Any]]:
    """The structs of a request, as dictionaries."""
    for each in value if isinstance(value, list) else [value]:
        if hasattr(each, "__slots__"):
            fields = {name: getattr(each, name) for name in each.__slots__}
            yield fields
            for inner in fields.values():
                yield from _structs(inner)


def marked(marker: Any) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def lacks_an_epoch(difference: Difference) -> bool:
    """Whether a batch has the id of a producer and no epoch."""
    identities = [
        _identity(partition.records)
        for topic in difference.asked.topic_data
        for partition in topic.partition_data
        if partition.records is not None
    ]
    return any(producer_id >= 0 > epoch for producer_id, epoch in identities)


def _identity(records: Any) -> tuple[int, int]:
    """Producer id and epoch of a batch: in its bytes, or as a generator describes it."""
    if not isinstance(records, bytes | bytearray | memoryview):
        return records.producer_id, records.epoch
    if len(records) < HEADER_BYTES:
        return NO_PRODUCER_ID, NO_PRODUCER_EPOCH
    header = HEADER.unpack_from(records)
    return header[_PRODUCER_ID], header[_PRODUCER_EPOCH]


def has_twins(names: list[Any]) -> bool:
    return len(set(names)) < len(names)


def names_a_protocol_twice(asked: Any) -> bool:
    return has_twins([one.name for one in asked.protocols])


def names_an_id_of_zeros(difference: Difference) -> bool:
    return difference.version >= 13 and any(
        not any(topic.topic_id) for topic in difference.asked.topics
    )


def theirs_failed(difference: Difference) -> bool:
    """Whether the whole answer is that Apache Kafka failed, or there is none."""
    if not difference.around:
        return True
    ours, theirs = (each["error_code"] for each in difference.around[0])
    return bool(theirs not in ("NONE", ours))


def is_described_before_it_is_recorded(difference: Difference) -> bool:
    """One is told of a group to whose members nothing has been assigned, the other of none."""
    ours, theirs = next(each for each in reversed(difference.around) if "group_state" in each[0])
    is_there = ours["group_state"] in _UNRECORDED and ours["error_code"] == "NONE"
    is_none = theirs["group_state"] == "Dead" and theirs["protocol_type"] == ""
    code = "GROUP_ID_NOT_FOUND" if difference.version >= _TELLS_OF_NO_GROUP else "NONE"
    is_idle = not any(member["member_assignment"] for member in ours["members"])
    is_told = theirs["error_code"] == code and not theirs["members"]
    return bool(is_there and is_idle and is_none and is_told)


def is_told_later(difference: Difference) -> bool:
    """Of a subscription by a pattern: a later epoch, or partitions that one side tells of now."""
    if not difference.asked.subscribed_topic_regex:
        return False
    if difference.path == "member_epoch":
        return bool(difference.ours > difference.theirs)
    return any(each in (None, ABSENT) for each in (difference.ours, difference.theirs))


def is_told_once_more(difference: Difference) -> bool:
    """To a member that is in its group and says what it has."""
    asked = difference.asked
    return (
        asked.member_epoch > 0
        and None not in (asked.active_tasks, asked.standby_tasks, asked.warmup_tasks)
        and difference.ours is not None
        and difference.theirs is None
    )


def same_records_of_a_part(difference: Difference) -> bool:
    return _are_parts(*difference.around[-1])


def _are_parts(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Two batches with holes that compaction made, alike in all but how they are written."""
    written = dict.fromkeys(("base_timestamp", "size", "compressed_size"), 0)
    has_holes = 0 < ours["count"] <= ours["last_offset"] - ours["base_offset"]
    if not has_holes or {**ours, **written} != {**theirs, **written}:
        return False
    if not _is_first_that_stays(ours, theirs):
        return False
    if "size" in ours:  # all that is written otherwise is how far each time is from the first
        return bool(abs(ours["size"] - theirs["size"]) <= _VARINT_BYTES * ours["count"])
    return bool(min(ours["compressed_size"], theirs["compressed_size"]) > 0)


def cut_behind_a_part(difference: Difference) -> bool:
    """The end of an answer that is as long on both sides, behind batches some of which are not."""
    cuts, partitions = difference.around[-1], difference.around[-2]
    ours, theirs = (each["records"][:-1] for each in partitions)
    if sum(cuts[0].values()) != sum(cuts[1].values()) or len(ours) != len(theirs):
        return False
    pairs = list(zip(ours, theirs, strict=True))
    return any(_are_parts(*pair) for pair in pairs) and all(
        pair[0] == pair[1] or _are_parts(*pair) for pair in pairs
    )


def _is_first_that_stays(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether the one that was written anew begins at its first record's time, or both at when
    their deletions may be forgotten."""
    both = ours["base_timestamp"], theirs["base_timestamp"]
    if ours["attributes"] & DELETE_HORIZON_BIT:
        return bool(abs(both[0] - both[1]) <= CLOSE_MS)
    return bool(both[0] >= 0 and both[1] == theirs["records"][0]["timestamp"])


def same_records(difference: Difference) -> bool:
    """Whether two batches are alike in all but their size, and the times that each broker set."""
    ours, theirs = difference.around[-1]
    sizes = ours["compressed_size"], theirs["compressed_size"]
    return min(sizes) > 0 and _of_a_producer(ours) == _of_a_producer(theirs)


def _of_a_producer(batch: dict[str, Any]) -> dict[str, Any]:
    """What is not of a broker's codec or clock; its times are compared on their own."""
    left = {**batch, "compressed_size": 0}
    if batch["attributes"] & (LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT):
        left["base_timestamp"] = 0
    if batch["attributes"] & LOG_APPEND_TIME_BIT:
        left["max_timestamp"] = 0
        left["records"] = [{**each, "timestamp": 0} for each in batch["records"]]
    return left


def is_kept_marker(difference: Difference) -> bool:
    """The batch of a marker, and the same without it."""
    ours, theirs = next(each for each in reversed(difference.around) if "attributes" in each[0])
    same = ("base_offset", "last_offset", "leader_epoch", "producer_id", "epoch", "sequence")
    is_one = ours["attributes"] & CONTROL_BIT and (ours["count"], theirs["count"]) == (1, 0)
    is_empty = (theirs["size"], theirs["records"]) == (HEADER_BYTES, [])
    others = {ours["attributes"], ours["attributes"] & ~DELETE_HORIZON_BIT}
    is_same = theirs["attributes"] in others and all(ours[each] == theirs[each] for each in same)
    return bool(is_one and is_empty and is_same)


def found_a_kept_marker(difference: Difference) -> bool:
    """An answer to a time: what a broker wrote of late; and what comes later, or nothing."""
    ours, theirs = difference.around[-1]
    is_none = theirs["offset"] == theirs["timestamp"] == theirs.get("leader_epoch", -1) == -1
    is_later = theirs["offset"] > ours["offset"]
    is_there = ours["offset"] >= 0 and _are_of_this_moment(ours["timestamp"], ours["timestamp"])
    asked = {
        partition.timestamp
        for topic in difference.asked.topics
        for partition in topic.partitions
        if partition.partition_index == ours["partition_index"]
    }
    first = min(ours["timestamp"], ours["timestamp"] if is_none else theirs["timestamp"])
    is_asked = any(0 <= each <= first or (is_none and each == MAX_TIMESTAMP) for each in asked)
    return bool(is_there and is_asked and (is_none or is_later))


def drops_versions(difference: Difference) -> bool:
    dropped = spec.api(difference.around[-1][0]["api_key"]).dropped
    return (difference.ours, difference.theirs) == (dropped.start, dropped.stop)
