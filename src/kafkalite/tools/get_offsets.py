"""`kafka-get-offsets`: the offsets of partitions at a moment."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ListOffsetsRequest
from kafkalite.tools.asking import BOOTSTRAP, Asking, connect
from kafkalite.tools.failures import Failure, WrongUse, no_number, refused
from kafkalite.tools.java_numbers import LONG, java_split, whole
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import help_or_version, tell, tell_use
from kafkalite.tools.topic_reports import TIMEOUT_MS, all_topics, topic_filter

_ABOUT = "An interactive shell for getting topic-partition offsets."
_RULE = r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?"
_MOMENTS = {
    "latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5,
    "earliest-pending-upload": -6,
}  # fmt: skip
_MOMENTS_SHOWN = (
    "-1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or "
    "latest-tiered / -6 or earliest-pending-upload"
)
_NO_OFFSET = -1

OPTIONS = [
    Option(
        "bootstrap-server",
        "REQUIRED. The server(s) to connect to in the form HOST1:PORT1,HOST2:PORT2.",
        "HOST1:PORT1,...,HOST3:PORT3",
    ),
    Option(
        "topic-partitions",
        "Comma separated list of topic-partition patterns to get the offsets for, with the format "
        f"of '{_RULE}'. The first group is an optional regex for the topic name, if omitted, it "
        "matches any topic name. The section after ':' describes a 'partition' pattern, which can "
        "be: a number, a range in the format of 'NUMBER-NUMBER' (lower inclusive, upper "
        "exclusive), an inclusive lower bound in the format of 'NUMBER-', an exclusive upper bound "
        "in the format of '-NUMBER' or may be omitted to accept all partitions.",
        "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
    ),
    Option(
        "topic",
        "The topic to get the offsets for. It also accepts a regular expression. If not present, "
        "all authorized topics are queried. Cannot be used if --topic-partitions is present.",
        "topic",
    ),
    Option(
        "partitions",
        "Comma separated list of partition ids to get the offsets for. If not present, all "
        "partitions of the authorized topics are queried. Cannot be used if --topic-partitions is "
        "present.", "partition ids",
    ),
    Option(
        "time",
        "timestamp of the offsets before that. [Note: No offset is returned, if the timestamp "
        "greater than recently committed record timestamp is given.]",
        f"<timestamp> / {_MOMENTS_SHOWN}", default="latest",
    ),
    Option(
        "command-config",
        "Property file containing configs to be passed to Admin Client.", "config file",
    ),
    Option(
        "exclude-internal-topics",
        "By default, internal topics are included. If specified, internal topics are excluded.",
    ),
]  # fmt: skip

Filter = Callable[[str, int], bool]


class Refused(Exception):
    """What is said without a stack."""


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        try:
            given.read(words)
        except Failure as failure:
            raise Refused(str(failure)) from failure
        ended = _checked(given, words)
        return _run(given) if ended is None else ended
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Refused as refusal:
        tell(f"Error occurred: {refusal}")
    except Failure as failure:
        tell(f"Error occurred: {failure}")
        tell(failure.stack())
    return 1


def _checked(given: Given, words: list[str]) -> int | None:
    if not words:
        raise WrongUse(_ABOUT)
    if (ended := help_or_version(given, _ABOUT)) is not None:
        return ended
    given.require("bootstrap-server")
    if not BOOTSTRAP.fullmatch(given.one("bootstrap-server")):
        raise WrongUse("Please provide valid host:port like host1:9091,host2:9092\n")
    return None


def _run(given: Given) -> int:
    is_wanted, moment = _filter(given), _moment(given.one("time"))
    asking = connect(given.one("bootstrap-server"), given.one("command-config"))
    try:
        offsets = _offsets(asking, _wanted(given, asking, is_wanted), moment)
    finally:
        asking.close()
    for (topic, partition), offset in sorted(offsets.items(), key=_place):
        if offset != _NO_OFFSET:
            print(f"{topic}:{partition}:{offset}")
    return 0


def _place(item: tuple[tuple[str, int], int]) -> str:
    (topic, partition), _ = item
    return f"{topic}-{partition}"


def _moment(text: str) -> int:
    try:
        return _MOMENTS[text] if text in _MOMENTS else whole(text, LONG)
    except ValueError:
        raise Refused(
            f"Malformed time argument {text}. Please use {_MOMENTS_SHOWN}, or a specified long "
            "format timestamp"
        ) from None


def _filter(given: Given) -> Filter:
    rules = given.one("topic-partitions")
    if rules is None:
        return _one_filter(given.one("topic"), given.one("partitions"))
    if given.has("topic") or given.has("partitions"):
        raise Refused("--topic-partitions cannot be used with --topic or --partitions")
    filters = [_rule(text) for text in rules.split(",")]
    return lambda topic, partition: any(each(topic, partition) for each in filters)


def _one_filter(topics: str | None, partitions: str | None) -> Filter:
    pattern = topic_filter(".*" if topics is None else topics)
    try:
        numbers = {whole(text) for text in java_split(partitions, ",")} if partitions else None
    except ValueError:
        raise Refused(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{partitions}"
        ) from None
    return lambda topic, partition: (
        pattern.fullmatch(topic) is not None and (not numbers or partition in numbers)
    )


def _rule(text: str) -> Filter:
    """One topic, by a pattern, and which of its partitions."""
    found = re.fullmatch(_RULE, text)
    if found is None:
        terse = "org.apache.kafka.tools.TerseException"
        cause = Failure(terse, f"Invalid rule specification: {text}")
        raise Failure("java.lang.RuntimeException", f"{terse}: {cause.message}", cause)
    pattern = topic_filter(found[1] or ".*")
    number, lower, upper = (_bound(text) for text in found.group(2, 3, 4))
    return lambda topic, partition: (
        pattern.fullmatch(topic) is not None
        and (number is None or partition == number)
        and (lower is None or partition >= lower)
        and (upper is None or partition < upper)
    )


def _bound(text: str | None) -> int | None:
    try:
        return whole(text) if text else None
    except ValueError:
        raise no_number(text or "") from None


def _wanted(given: Given, asking: Asking, is_wanted: Filter) -> dict[tuple[str, int], int]:
    """The leaders of the partitions that are asked for."""
    without_internal = given.has("exclude-internal-topics")
    found = {
        (topic.name, each.partition_index): each.leader_id
        for topic in all_topics(asking)
        if not (topic.is_internal and without_internal)
        for each in topic.partitions
        if is_wanted(topic.name, each.partition_index)
    }
    if not found:
        raise Refused("Could not match any topic-partitions with the specified filters")
    return found


def _offsets(
    asking: Asking, leaders: dict[tuple[str, int], int], moment: int
) -> dict[tuple[str, int], int]:
    """The offset of each partition, from its leader; says which are skipped."""
    offsets = {}
    for leader in sorted(set(leaders.values())):
        wanted = sorted(partition for partition, of in leaders.items() if of == leader)
        if leader < 0:
            for each in wanted:
                _skip(*each, refused(Error.LEADER_NOT_AVAILABLE))
            continue
        answer = asking.broker("listOffsets", leader, offsets_request(wanted, moment))
        for topic in answer.topics:
            for each in sorted(topic.partitions, key=lambda each: each.partition_index):
                if each.error_code != Error.NONE:
                    _skip(topic.name, each.partition_index, refused(each.error_code))
                else:
                    offsets[topic.name, each.partition_index] = each.offset
    return offsets


def offsets_request(partitions: Sequence[tuple[str, int]], moment: int) -> Any:
    topics: dict[str, list[Any]] = {}
    for topic, partition in partitions:
        each = ListOffsetsRequest.Partition(partition_index=partition, timestamp=moment)
        topics.setdefault(topic, []).append(each)
    return ListOffsetsRequest(
        replica_id=-1, timeout_ms=TIMEOUT_MS,
        topics=[ListOffsetsRequest.Topic(name=name, partitions=topics[name]) for name in topics],
    )  # fmt: skip


def _skip(topic: str, partition: int, failure: Failure) -> None:
    tell(
        f"Skip getting offsets for topic-partition {topic}-{partition} due to error: "
        f"{failure.java}: {failure.message}"
    )
