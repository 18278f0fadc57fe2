"""The table of differences that are allowed, each with its reason. docs/differences.md shows it.

A row names a place in an answer and says which values may differ there. A difference without a
row is a bug.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from kafkalite.records.batch import (
    HEADER,
    HEADER_BYTES,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
)
from kafkalite.testing.comparison.comparing import Difference

_PRODUCER_ID, _PRODUCER_EPOCH = 9, 10  # in a batch's header


def _any(difference: Difference) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Allowed:
    """`path` may hold *, which stands for anything; `[]` are the brackets of a list. What
    `parts_states` leaves the two in states that cannot be compared any more."""

    api: str
    path: str
    reason: str
    holds: Callable[[Difference], bool] = _any
    parts_states: bool = False

    def covers(self, difference: Difference) -> bool:
        api, path = difference.signature
        return (
            fnmatchcase(api, self.api)
            and fnmatchcase(path.replace("[]", ""), self.path.replace("[]", ""))
            and self.holds(difference)
        )


@dataclass(frozen=True, slots=True)
class Unlike:
    """Two that answer alike are not in the same state afterwards. `holds` is given the request, its
    answer and the requests before it."""

    api: str
    reason: str
    holds: Callable[[Any, Any, Sequence[Any]], bool]


def _two_texts(difference: Difference) -> bool:
    return isinstance(difference.ours, str) and isinstance(difference.theirs, str)


def _only_hollow(difference: Difference) -> bool:
    """Elements of lists that name something and nothing in it; comparing.py sets them apart."""
    both = (difference.ours, difference.theirs)
    return all(isinstance(each, list) for each in both) and all(
        isinstance(each, dict) and [] in each.values() for side in both for each in side
    )


def _only_unrecorded(difference: Difference) -> bool:
    more = [each for each in difference.ours if each not in difference.theirs]
    return len(difference.ours) - len(difference.theirs) == len(more) and all(
        not each["protocol_type"] and each.get("group_state", "Empty") == "Empty" for each in more
    )


def _marked(marker: Any) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]


def _lacks_an_epoch(difference: Difference) -> bool:
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


def _has_twins(names: list[Any]) -> bool:
    return len(set(names)) < len(names)


def _more_versions(difference: Difference) -> bool:
    """Ours begin earlier and end alike; no API is ours alone."""
    theirs = {each["api_key"]: each for each in difference.theirs}
    return all(
        each["api_key"] in theirs
        and each["min_version"] <= theirs[each["api_key"]]["min_version"]
        and each["max_version"] == theirs[each["api_key"]]["max_version"]
        for each in difference.ours
    )


def _fewer_features(difference: Difference) -> bool:
    unserved = ("share.version", "streams.version")
    return bool(
        difference.ours == [each for each in difference.theirs if each["name"] not in unserved]
    )


ALLOWED: tuple[Allowed, ...] = (
    Allowed(
        "*",
        "*error_message",
        "kafkalite tells in its own words what is wrong. The error code, and whether there is a"
        " text at all, are the same.",
        _two_texts,
    ),
    Allowed(
        "JoinGroup",
        "*",
        "A member that names a protocol twice: Apache Kafka counts it as two supporters, finds no"
        " protocol for the group and fails, or throws in a timer and never answers. kafkalite"
        " counts it once.",
        lambda difference: _has_twins([one.name for one in difference.asked.protocols]),
        parts_states=True,
    ),
    Allowed(
        "ConsumerGroupHeartbeat",
        "*",
        "A member that subscribes by a pattern: kafkalite looks for topics before it answers;"
        " Apache Kafka after, and tells the member at its next heartbeat.",
        lambda difference: bool(difference.asked.subscribed_topic_regex)
        and difference.path.startswith(("member_epoch", "assignment")),
        parts_states=True,
    ),
    Allowed(
        "Produce",
        "answer: an answer | no answer in time",
        "A partition whose records are null: Apache Kafka fails inside and never answers;"
        " kafkalite answers INVALID_RECORD.",
        lambda difference: any(
            partition.records is None
            for topic in difference.asked.topic_data
            for partition in topic.partition_data
        ),
        parts_states=True,
    ),
    Allowed(
        "AddPartitionsToTxn",
        "answer: an answer | no answer in time",
        "A request about no transaction: Apache Kafka never answers it; kafkalite answers at once.",
        lambda difference: not difference.asked.transactions,
        parts_states=True,
    ),
    Allowed(
        "WriteTxnMarkers",
        "answer: an answer | no answer in time",
        "Several markers, the last of which has no partition that is there, or one that names a"
        " partition twice, which no broker sends: Apache Kafka forgets to answer.",
        lambda difference: len(difference.asked.markers) > 1
        or any(map(_has_twins, map(_marked, difference.asked.markers))),
        parts_states=True,
    ),
    Allowed(
        "AlterConfigs",
        "answer: an answer | no answer in time",
        "A resource that is named twice: Apache Kafka fails inside and never answers; kafkalite"
        " refuses it, as both do in IncrementalAlterConfigs.",
        lambda difference: _has_twins(
            [(one.resource_type, one.resource_name) for one in difference.asked.resources]
        ),
        parts_states=True,
    ),
    Allowed(
        "WriteTxnMarkers",
        "*error_code",
        "A marker of a producer whose id is below -1: Apache Kafka writes it; kafkalite refuses it"
        " as both do one of the id -1, which stands for nobody.",
        lambda difference: difference.ours == "UNKNOWN_SERVER_ERROR"
        and any(marker.producer_id < -1 for marker in difference.asked.markers),
        parts_states=True,
    ),
    Allowed(
        "*",
        "*",
        "A topic that a request names without any partition, or a transaction without topics, which"
        " no client does: some answers of Apache Kafka repeat it and others do not.",
        _only_hollow,
    ),
    Allowed(
        "Fetch",
        "*",
        "A topic id of zeros, which no topic has, among others: Apache Kafka fails at writing its"
        " answer, and answers that or never; kafkalite answers UNKNOWN_TOPIC_ID for the topic.",
        lambda difference: difference.version >= 13
        and any(not any(topic.topic_id) for topic in difference.asked.topics)
        and difference.path.startswith(("answer", "error_code", "responses", "session_id")),
        parts_states=True,
    ),
    Allowed(
        "ListGroups",
        "groups",
        "A group that only refused requests have named, of which nothing is recorded: kafkalite"
        " lists it at once; Apache Kafka when something else is recorded on the same shard.",
        _only_unrecorded,
    ),
    Allowed(
        "DescribeGroups",
        "groups[].*",
        "The same, described.",
        lambda difference: (difference.ours, difference.theirs)
        in (("Empty", "Dead"), ("NONE", "GROUP_ID_NOT_FOUND"))
        or (difference.path == "groups[].error_message" and difference.ours is None),
    ),
    Allowed(
        "Produce",
        "*error_code",
        "A batch of a producer with an id and without an epoch, which no client sends, for a topic"
        " that the broker compresses: Apache Kafka fails at writing it anew; kafkalite takes it, as"
        " both do where it is written as it is.",
        lambda difference: _lacks_an_epoch(difference)
        and (difference.ours, difference.theirs) == ("NONE", "UNKNOWN_SERVER_ERROR"),
        parts_states=True,
    ),
    Allowed(
        "Produce",
        "*base_offset",
        "The same.",
        lambda difference: _lacks_an_epoch(difference) and difference.theirs == -1,
    ),
    Allowed(
        "Produce",
        "*error_message",
        "Of a batch that is cut off kafkalite also says what is wrong with it.",
        lambda difference: difference.theirs is None,
    ),
    Allowed(
        "Produce",
        "*log_start_offset",
        "Of a refused batch: Apache Kafka tells the start of the log for some reasons of refusal.",
        lambda difference: difference.ours == -1,
    ),
    Allowed(
        "Fetch",
        "*records[].compressed_size",
        "Of a batch that the broker compressed, which holds the same records: the codec libraries"
        " are not the same.",
    ),
    Allowed(
        "DescribeLogDirs",
        "*partition_size",
        "The same, by a tenth at most.",
        lambda difference: abs(difference.ours - difference.theirs) <= difference.theirs // 10,
    ),
    Allowed(
        "DescribeProducers",
        "*error_message",
        "A partition that is not there: kafkalite always says so; Apache Kafka only if its topic is"
        " not there either.",
        lambda difference: difference.theirs is None,
    ),
    Allowed(
        "DescribeConfigs",
        "results[].configs*documentation",
        "Settings are documented in kafkalite's own words, which also tell which have no effect.",
        _two_texts,
    ),
    Allowed(
        "ApiVersions",
        "*_features",
        "Features of groups that kafkalite does not serve so far (share.version, streams.version).",
        _fewer_features,
    ),
    Allowed(
        "ApiVersions",
        "api_keys",
        "kafkalite also serves the old versions that Apache Kafka 4 dropped, and advertises only"
        " the APIs that it serves: no share or streams groups, SASL or delegation tokens so far.",
        _more_versions,
    ),
)


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
        lambda asked, answer, before: _has_twins([one.name for one in asked.protocols]),
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


def parts_states(difference: Difference) -> bool:
    row = explain(difference)
    return row is not None and row.parts_states


def explain(difference: Difference) -> Allowed | None:
    """The row that allows this difference."""
    return next((row for row in ALLOWED if row.covers(difference)), None)


def unexplained(differences: Iterable[Difference]) -> list[Difference]:
    return [each for each in differences if explain(each) is None]


def as_page() -> str:
    """docs/differences.md."""
    lines = [
        "# Where kafkalite answers otherwise than Apache Kafka 4.3.1",
        "",
        "Generated by `python -m tests.differential --write-page docs/differences.md` from the"
        " table in `kafkalite.testing.comparison.differences`, which `make differential` compares"
        " by: what differs and is not here is a bug.",
        "",
        "| API | field | why |",
        "| --- | --- | --- |",
    ]
    for row in ALLOWED:
        api, path = ("all" if each == "*" else f"`{each}`" for each in (row.api, row.path))
        lines.append(f"| {api} | {path} | {row.reason} |".replace(" | no answer", " / no answer")
                     .replace(" | the broker", " / the broker"))
    lines += ["", "Answered alike, but not in the same state afterwards:", ""]
    lines += ["| API | why |", "| --- | --- |"]
    lines += [f"| `{row.api}` | {row.reason} |" for row in UNLIKE]
    return "\n".join(lines) + "\n"
