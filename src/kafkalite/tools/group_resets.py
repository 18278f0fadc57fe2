"""`kafka-consumer-groups --reset-offsets`: the offsets from which groups are to go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import OffsetCommitRequest
from kafkalite.tools import reset_plans
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import (
    Failure,
    WrongUse,
    code_of,
    execution,
    illegal_argument,
    refused,
    runtime,
    wrapped,
)
from kafkalite.tools.group_questions import (
    CLASSIC,
    CONSUMER,
    committed,
    describe_one,
    list_consumer_groups,
    list_groups,
)
from kafkalite.tools.java_maps import TopicPartition, in_map_order, partitions_in_map_order
from kafkalite.tools.java_numbers import java_split, whole
from kafkalite.tools.led_partitions import invalid_topic
from kafkalite.tools.options import Given
from kafkalite.tools.partition_offsets import (
    EARLIEST,
    LATEST,
    check_known,
    leaders_of,
    offsets_at,
    shown,
)
from kafkalite.tools.running import log, tell_error

# In the order in which they are named to those who chose none.
SCENARIOS = (
    "to-earliest", "to-offset", "shift-by", "from-file", "to-datetime", "by-duration", "to-latest",
    "to-current",
)  # fmt: skip
_CLASS = "org.apache.kafka.tools.GroupOffsetsResetter"
_ALWAYS_QUOTED = 24  # longer texts are, in a file of comma separated values
_FOR = "for topic partition"
_NO_OFFSET = -1
_NOBODY = -1  # the epoch of who commits without being a member

Offsets = dict[TopicPartition, int]


def reset(given: Given, asking: Asking) -> None:
    groups = in_map_order(chosen_groups(given, asking))
    with wrapped(execution, runtime):
        streams = {each.group_id for each in list_groups(asking, types=["Streams"])}
    found = {group_id: _of_group(given, asking, group_id, streams) for group_id in groups}
    if given.has("export"):
        print(_exported(found, has_groups=len(given.all("group")) != 1))
    else:
        _print(found)


def chosen_groups(given: Given, asking: Asking) -> list[str]:
    if not given.has("all-groups"):
        return given.all("group")
    with wrapped(execution, runtime):
        return [each.group_id for each in list_consumer_groups(asking, types=(CLASSIC, CONSUMER))]


def _of_group(given: Given, asking: Asking, group_id: str, streams: set[str]) -> Offsets:
    if group_id in streams:
        tell_error(
            f"Group '{group_id}' is a streams group. Use kafka-streams-groups.sh to reset its "
            "offsets."
        )
        return {}
    state = _state(asking, group_id)
    if state not in ("Empty", "Dead"):
        tell_error(
            f"Assignments can only be reset if the group '{group_id}' is inactive, but the current "
            f"state is {state}."
        )
        return {}
    partitions = _scope(given, asking, group_id)
    check_known(asking, partitions)
    offsets = _planned(given, asking, group_id, partitions)
    offsets = {each: offsets[each] for each in partitions_in_map_order(offsets)}
    if given.has("execute"):
        _commit(asking, group_id, offsets)
    return offsets


def _state(asking: Asking, group_id: str) -> str:
    try:
        return describe_one(asking, group_id).state
    except Failure as failure:
        if failure.java.endswith(".GroupIdNotFoundException"):
            return "Dead"
        raise runtime(execution(failure)) from None


def _scope(given: Given, asking: Asking, group_id: str) -> list[TopicPartition]:
    if given.has("all-topics"):
        with wrapped(execution, runtime):
            return list(committed(asking, group_id))
    if given.has("topic"):
        return _named(asking, given.all("topic"))
    if not given.has("from-file"):
        raise WrongUse("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def _named(asking: Asking, texts: Sequence[str]) -> list[TopicPartition]:
    found = [each for text in texts if ":" in text for each in partitions_of(text)]
    whole = [text for text in texts if ":" not in text]
    return found + list(leaders_of(asking, whole)) if whole else found


def partitions_of(text: str) -> list[TopicPartition]:
    """A topic, a colon, and numbers of partitions with commas between."""
    parts = java_split(text, ":")
    if len(parts) != 2:
        raise illegal_argument(f"Invalid topic arg '{text}', expected topic name and partitions")
    found = []
    for number in java_split(parts[1], ","):
        try:
            found.append((parts[0], whole(number)))
        except ValueError:
            raise illegal_argument(
                f"Invalid partition '{number}' specified in topic arg '{text}''"
            ) from None
    return found


def _planned(
    given: Given, asking: Asking, group_id: str, partitions: Sequence[TopicPartition]
) -> Offsets:
    for scenario, plan in _PLANS.items():
        if given.has(scenario):
            return plan(given, asking, group_id, partitions)
    scenarios = ", ".join(f"[{name}]" for name in SCENARIOS)
    raise WrongUse(
        f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]"
    )


def _to_offset(
    given: Given, asking: Asking, _: str, partitions: Sequence[TopicPartition]
) -> Offsets:
    return _within(asking, dict.fromkeys(partitions, given.all("to-offset")[0]))


def _to_earliest(_: Given, asking: Asking, __: str, wanted: Sequence[TopicPartition]) -> Offsets:
    return _listed(asking, wanted, EARLIEST)


def _to_latest(_: Given, asking: Asking, __: str, wanted: Sequence[TopicPartition]) -> Offsets:
    return _listed(asking, wanted, LATEST)


def _shift_by(
    given: Given, asking: Asking, group_id: str, partitions: Sequence[TopicPartition]
) -> Offsets:
    with wrapped(execution, runtime):
        current = committed(asking, group_id)
    wanted = {}
    for each in partitions:
        known = current.get(each)
        if known is None:
            raise illegal_argument(
                f"Cannot shift offset for partition {shown(each)} since there is no current "
                "committed offset"
            )
        wanted[each] = known.offset + given.one("shift-by")
    return _within(asking, wanted)


def _to_datetime(
    given: Given, asking: Asking, _: str, partitions: Sequence[TopicPartition]
) -> Offsets:
    with wrapped(runtime):
        moment = reset_plans.moment_ms(given.all("to-datetime")[0])
    return _at(asking, partitions, moment)


def _by_duration(
    given: Given, asking: Asking, _: str, partitions: Sequence[TopicPartition]
) -> Offsets:
    before_ms = reset_plans.duration_ms(given.one("by-duration"))
    return _at(asking, partitions, int(1000 * time.time()) - before_ms)


def _to_current(
    _: Given, asking: Asking, group_id: str, partitions: Sequence[TopicPartition]
) -> Offsets:
    with wrapped(execution, runtime):
        current = committed(asking, group_id)
    known = {each: offset for each in partitions if (offset := current.get(each)) is not None}
    found = {each: known[each].offset for each in partitions_in_map_order(known)}
    new = partitions_in_map_order(each for each in partitions if each not in found)
    return found | _listed(asking, new, LATEST)


def _from_file(given: Given, asking: Asking, group_id: str, _: object) -> Offsets:
    wanted = reset_plans.of_file(given).get(group_id)
    if wanted is None:
        tell_error(f"No reset plan for group {group_id} found")
        return {}
    return _within(asking, wanted)


_PLANS: Mapping[str, Callable[[Given, Asking, str, Sequence[TopicPartition]], Offsets]] = {
    "to-offset": _to_offset, "to-earliest": _to_earliest, "to-latest": _to_latest,
    "shift-by": _shift_by, "to-datetime": _to_datetime, "by-duration": _by_duration,
    "from-file": _from_file, "to-current": _to_current,
}  # fmt: skip


def _listed(asking: Asking, partitions: Collection[TopicPartition], moment: int) -> Offsets:
    if not partitions:
        return {}
    leaders: dict[TopicPartition, int] = {}
    for each in partitions:
        if each not in leaders:
            with wrapped(execution, runtime):
                leaders |= _leaders_beside(asking, each)
    return offsets_at(asking, {each: leaders[each] for each in partitions}, moment)


def _leaders_beside(asking: Asking, partition: TopicPartition) -> dict[TopicPartition, int]:
    """The leaders of all partitions of its topic."""
    try:
        leaders = leaders_of(asking, partition[:1])
    except Failure as failure:
        if code_of(failure) == Error.INVALID_TOPIC_EXCEPTION.name:
            raise invalid_topic(partition) from None
        if code_of(failure) != Error.UNKNOWN_TOPIC_OR_PARTITION.name:
            raise
        message = (
            f"Failed to fetch metadata for partition {shown(partition)} because metadata for topic "
            f"`{partition[0]}` could not be found"
        )
        raise Failure(failure.java, message) from None
    if partition not in leaders:
        raise refused(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return leaders


def _at(asking: Asking, partitions: Sequence[TopicPartition], moment: int) -> Offsets:
    """The first record of that time or later; where a partition ends if there is none."""
    found = _listed(asking, partitions_in_map_order(partitions), moment)
    empty = partitions_in_map_order(each for each in found if found[each] == _NO_OFFSET)
    for topic, partition in empty:
        print(
            f"\nWarn: Partition {partition} from topic {topic} is empty. Falling back to latest "
            "known offset."
        )
    ends = _listed(asking, empty, LATEST)
    return {each: ends.get(each, found[each]) for each in partitions}


def _within(asking: Asking, wanted: Mapping[TopicPartition, int]) -> Offsets:
    """None beyond where its partition begins or ends."""
    first = _listed(asking, wanted, EARLIEST)
    last = _listed(asking, wanted, LATEST)
    found = {}
    for each in partitions_in_map_order(wanted):
        offset = wanted[each]
        if offset > last[each]:
            _warn(each, offset, f"higher than latest offset {_FOR}", last[each])
        elif offset < first[each]:
            _warn(each, offset, f"lower than earliest offset {_FOR}", first[each])
        found[each] = max(first[each], min(offset, last[each]))
    return found


def _warn(partition: TopicPartition, offset: int, wrong: str, found: int) -> None:
    message = f"New offset ({offset}) is {wrong} {shown(partition)}. Value will be set to {found}."
    log("WARN", message, _CLASS)


def _exported(found: Mapping[str, Offsets], *, has_groups: bool) -> str:
    return "".join(
        f"{_quoted(group_id) + ',' if has_groups else ''}{_quoted(topic)},{partition},{offset}\n"
        for group_id, offsets in found.items()
        for (topic, partition), offset in offsets.items()
    )


def _quoted(text: str) -> str:
    if len(text) <= _ALWAYS_QUOTED and all(char >= "-" for char in text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _print(found: Mapping[str, Offsets]) -> None:
    width = max(15, *map(len, found))
    topics = [topic for offsets in found.values() for topic, _ in offsets]
    topic_width = max(15, *map(len, topics), 0)
    rows = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if found else []
    rows += [
        (group_id, topic, str(partition), str(offset))
        for group_id, offsets in found.items()
        for (topic, partition), offset in offsets.items()
    ]
    for group_id, topic, partition, offset in rows:
        line = f"\n{group_id:{width}} {topic:{topic_width}} {partition:10} {offset}"
        print(line, end="")
    print()


def _commit(asking: Asking, group_id: str, offsets: Offsets) -> None:
    topics: dict[str, list[OffsetCommitRequest.Partition]] = {}
    for (topic, partition), offset in offsets.items():
        each = OffsetCommitRequest.Partition(
            partition_index=partition, committed_offset=offset, committed_metadata=""
        )
        topics.setdefault(topic, []).append(each)
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=_NOBODY, member_id="",
        topics=[OffsetCommitRequest.Topic(name=name, partitions=topics[name]) for name in topics],
    )  # fmt: skip
    answer = asking.coordinator("offsetCommit", group_id, request, _codes)
    failed = {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code != Error.NONE
    }
    if failed:
        names = ", ".join(map(shown, failed))
        message = f"Failed altering group offsets for the following partitions: [{names}]"
        raise refused(next(iter(failed.values())), message)


def _codes(answer: Any) -> list[int]:
    return [each.error_code for topic in answer.topics for each in topic.partitions]
