"""`kafka-consumer-groups`: lists, describes and deletes groups, and sets their offsets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kafkalite.coordinators.pattern_parsing import InvalidPattern
from kafkalite.coordinators.patterns import Pattern
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteGroupsRequest, OffsetDeleteRequest
from kafkalite.tools import group_reports, group_resets
from kafkalite.tools.asking import Asking, connect
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
from kafkalite.tools.group_questions import CLASSIC, CONSUMER, list_consumer_groups
from kafkalite.tools.java_maps import TopicPartition, in_map_order
from kafkalite.tools.java_numbers import java_split
from kafkalite.tools.options import Given, Option
from kafkalite.tools.partition_offsets import leaders_of
from kafkalite.tools.running import begin, tell, tell_error, tell_uncaught, tell_use

_ABOUT = (
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group "
    "info, or reset consumer group offsets."
)
_ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
_STATES = (
    "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning",
    "Reconciling",
)  # fmt: skip
_EXAMPLE = "Example: --bootstrap-server localhost:9092"
_DESCRIBE_EXAMPLE = f"{_EXAMPLE} --describe --group group1"
_DESCRIBES = "This option may be used with '--describe' and '--bootstrap-server' options only."
_RESETS = "Supported operations: reset-offsets."

OPTIONS = [
    Option(
        "bootstrap-server",
        "The server(s) to connect to. REQUIRED for all options except for --validate-regex.",
        "server to connect to",
    ),
    Option("group", "The consumer group we wish to act on.", "consumer group"),
    Option(
        "topic",
        "The topic whose consumer group information should be deleted or topic whose should be "
        "included in the reset offset process. In `reset-offsets` case, partitions can be "
        "specified using this format: `topic1:0,1,2`, where 0,1,2 are the partition to be included "
        "in the process. Reset-offsets also supports multiple topic inputs.", "topic",
    ),
    Option(
        "all-topics", "Consider all topics assigned to a group in the `reset-offsets` process."
    ),
    Option("list", "List all consumer groups."),
    Option(
        "describe",
        "Describe consumer group and list offset lag (number of messages not yet processed) "
        "related to given group.",
    ),
    Option("all-groups", "Apply to all consumer groups."),
    Option(
        "delete",
        "Pass in groups to delete topic partition offsets and ownership information over the "
        "entire consumer group. For instance --group g1 --group g2",
    ),
    Option(
        "timeout",
        "The timeout that can be set for some use cases. For example, it can be used when "
        "describing the group to specify the maximum amount of time in milliseconds to wait before "
        "the group stabilizes (when the group is just created, or is going through some changes).",
        "timeout (ms)", int, default=30_000, is_long=True,
    ),
    Option(
        "command-config",
        "Property file containing configs to be passed to Admin Client and Consumer.",
        "command config property file",
    ),
    Option(
        "reset-offsets",
        "Reset offsets of consumer group. Supports one consumer group at the time, and instances "
        "should be inactive\nHas 2 execution options: --dry-run (the default) to plan which "
        "offsets to reset, and --execute to update the offsets. Additionally, the --export option "
        "is used to export the results to a CSV format.\nYou must choose one of the following "
        "reset specifications: --to-datetime, --by-duration, --to-earliest, --to-latest, "
        "--shift-by, --from-file, --to-current, --to-offset.\nTo define the scope use --all-topics "
        "or --topic. One scope must be specified unless you use '--from-file'.",
    ),
    Option(
        "delete-offsets",
        "Delete offsets of consumer group. Supports one consumer group at the time, and multiple "
        "topics.",
    ),
    Option(
        "dry-run",
        f"Only show results without executing changes on Consumer Groups. {_RESETS}",
    ),
    Option("execute", f"Execute operation. {_RESETS}"),
    Option("export", f"Export operation execution to a CSV file. {_RESETS}"),
    Option("to-offset", "Reset offsets to a specific offset.", "offset", int, is_long=True),
    Option("from-file", "Reset offsets to values defined in CSV file.", "path to CSV file"),
    Option(
        "to-datetime",
        "Reset offsets to offset from datetime. Format: 'YYYY-MM-DDThh:mm:ss.sss'", "datetime",
    ),
    Option(
        "by-duration",
        "Reset offsets to offset by duration from current timestamp. Format: 'PnDTnHnMnS'",
        "duration",
    ),
    Option("to-earliest", "Reset offsets to earliest offset."),
    Option("to-latest", "Reset offsets to latest offset."),
    Option("to-current", "Reset offsets to current offset."),
    Option(
        "shift-by",
        "Reset offsets shifting current offset by 'n', where 'n' can be positive or negative.",
        "number-of-offsets", int, is_long=True,
    ),
    Option(
        "members",
        f"Describe members of the group. {_DESCRIBES}\n{_DESCRIBE_EXAMPLE} --members",
        only_with=("describe",),
    ),
    Option(
        "offsets",
        "Describe the group and list all topic partitions in the group along with their offset "
        "lag. This is the default sub-action of and may be used with '--describe' and "
        f"'--bootstrap-server' options only.\n{_DESCRIBE_EXAMPLE} --offsets",
        only_with=("describe",),
    ),
    Option(
        "state",
        "When specified with '--describe', includes the state of the group.\n"
        f"{_DESCRIBE_EXAMPLE} --state\n"
        "When specified with '--list', it displays the state of all groups. It can also be used to "
        f"list groups with specific states.\n{_EXAMPLE} --list --state stable,empty\n"
        "This option may be used with '--describe', '--list' and '--bootstrap-server' options "
        "only.", "", may_lack_argument=True, only_with=("describe", "list"),
    ),
    Option(
        "verbose",
        "Provide additional information, if any, when describing the group. This option may be "
        "used with '--offsets'/'--members'/'--state' and '--bootstrap-server' options only.\n"
        f"{_DESCRIBE_EXAMPLE} --members --verbose", only_with=("describe",),
    ),
    Option(
        "type",
        "When specified with '--list', it displays the types of all the groups. It can also be "
        f"used to list groups with specific types.\n{_EXAMPLE} --list --type classic,consumer\n"
        "This option may be used with the '--list' option only.", "", may_lack_argument=True,
        only_with=("list",),
    ),
    Option(
        "validate-regex",
        "Validate that the syntax of the provided regular expression is valid according to the "
        "RE2 format.", "regex",
    ),
]  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        if (ended := begin(given, words, _ABOUT)) is not None:
            return ended
        _check(given)
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_uncaught(failure)
    try:
        _act(given)
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        if failure.java == illegal_argument("").java:
            return tell_use(WrongUse(failure.message), given)
        message = f"Executing consumer group command failed due to {failure.message}"
        tell_error(message, failure)
    return 0


def _check(given: Given) -> None:
    if not given.has("validate-regex"):
        given.require("bootstrap-server")
    if given.has("describe"):
        _check_describe(given)
    if given.has("delete"):
        _require_groups(given, "delete")
        if given.has("topic"):
            raise WrongUse(
                "The consumer does not support topic-specific offset deletion from a consumer "
                "group."
            )
    if given.has("delete-offsets") and not (given.has("group") and given.has("topic")):
        raise WrongUse("Option [delete-offsets] takes the following options: [topic], [group]")
    if given.has("reset-offsets"):
        _check_reset(given)
    given.refuse("group", "all-groups", "list")
    given.refuse("topic", "describe", "list")
    if sum(given.has(action) for action in _ACTIONS) != 1:
        actions = ", ".join(f"--{action}" for action in _ACTIONS)
        raise WrongUse(f"Command must include exactly one action: {actions}")


def _require_groups(given: Given, action: str) -> None:
    if not given.has("group") and not given.has("all-groups"):
        raise WrongUse(f"Option [{action}] takes one of these options: [all-groups], [group]")


def _check_describe(given: Given) -> None:
    _require_groups(given, "describe")
    if sum(map(given.has, ("members", "offsets", "state"))) > 1:
        raise WrongUse(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if given.has("state") and given.one("state") is not None:
        raise WrongUse("Option [describe] does not take a value for [state]")


def _check_reset(given: Given) -> None:
    if given.has("dry-run") and given.has("execute"):
        raise WrongUse("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.has("dry-run") and not given.has("execute"):
        tell(
            "WARN: No action will be performed as the --execute option is missing. In version 5.0, "
            "this command will require either --dry-run or --execute to be specified. You should "
            "add the --dry-run option explicitly if you are scripting this command and want to "
            "keep the current default behavior without prompting."
        )
    _require_groups(given, "reset-offsets")
    for used in (
        "to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current",
        "shift-by", "from-file",
    ):  # fmt: skip
        given.refuse(used, *(name for name in group_resets.SCENARIOS if name != used))


def _act(given: Given) -> None:
    if given.has("validate-regex"):
        _validate(given.one("validate-regex"))
        return
    for name in ("by-duration", "shift-by", "to-offset"):  # told before anybody is asked
        (given.all if name == "to-offset" else given.one)(name)
    asking = _connect(given)
    try:
        if given.has("list"):
            _list(given, asking)
        elif given.has("describe"):
            _describe(given, asking)
        elif given.has("delete"):
            _delete(given, asking)
        elif given.has("reset-offsets"):
            group_resets.reset(given, asking)
        else:
            _delete_offsets(given, asking)
    finally:
        asking.close()


def _connect(given: Given) -> Asking:
    where, config = given.one("bootstrap-server"), given.one("command-config")
    try:
        return connect(where, config, timeout_s=given.one("timeout") / 1000)
    except Failure as failure:
        is_of_file = failure.java.startswith(("java.io.", "java.nio."))
        raise (runtime(failure) if is_of_file else failure) from None


def _validate(expression: str) -> None:
    try:
        Pattern(expression)
    except InvalidPattern as wrong:
        print(f"The regular expression `{expression}` is invalid: {wrong}.")
    else:
        print(f"The regular expression `{expression}` is valid.")


def _list(given: Given, asking: Asking) -> None:
    has_type, has_state = given.has("type"), given.has("state")
    if not has_type and not has_state:
        print("".join(f"{each}\n" for each in _all(asking)), end="")
        return
    types = _chosen(given.one("type"), (CONSUMER, CLASSIC), "types")
    states = _chosen(given.one("state"), _STATES, "state")
    with wrapped(execution):
        groups = list_consumer_groups(asking, states, types)
    width = max([15, *(len(each.group_id) for each in groups)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [
        (each.group_id, each.group_type.capitalize() or "Unknown", each.group_state or "Unknown")
        for each in groups
    ]
    for group_id, kind, state in rows:
        cells = [f"{group_id:{width}}"]
        cells += [f"{kind:20}"] if has_type else []
        cells += [f"{state:20}"] if has_state else []
        print(" ".join(cells))


def _all(asking: Asking) -> list[str]:
    with wrapped(execution, runtime):
        return [each.group_id for each in list_consumer_groups(asking, types=(CLASSIC, CONSUMER))]


def _chosen(text: str | None, known: Collection[str], what: str) -> list[str]:
    """Those of a list with commas, in whatever case; all of them when there is no list."""
    if not text:
        return []
    names = {name.lower(): name for name in known}
    parts = [part.strip().lower() for part in java_split(text, ",")]
    if not names.keys() >= set(parts):
        raise illegal_argument(
            f"Invalid {what} list '{text}'. Valid {what.removesuffix('s')}s are: {', '.join(known)}"
        )
    return [names[part] for part in dict.fromkeys(parts)]


def _describe(given: Given, asking: Asking) -> None:
    group_ids = _all(asking) if given.has("all-groups") else given.all("group")
    is_verbose = given.has("verbose")
    if given.has("members"):
        group_reports.print_members(asking, group_ids, is_verbose=is_verbose)
    elif given.has("state"):
        group_reports.print_states(asking, group_ids, is_verbose=is_verbose)
    else:
        group_reports.print_offsets(asking, group_ids, is_verbose=is_verbose)


def _delete(given: Given, asking: Asking) -> None:
    group_ids = _all(asking) if given.has("all-groups") else given.all("group")
    failures = {}
    deleted = []
    for group_id in in_map_order(group_ids):
        try:
            _delete_one(asking, group_id)
            deleted.append(f"'{group_id}'")
        except Failure as failure:
            failures[group_id] = failure
    names = ", ".join(deleted)
    if not failures:
        print(f"Deletion of requested consumer groups ({names}) was successful.")
        return
    tell_error("Deletion of some consumer groups failed:")
    for group_id, why in failures.items():
        print(f"* Group '{group_id}' could not be deleted due to: {why.java}: {why.message}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {names}")


def _delete_one(asking: Asking, group_id: str) -> None:
    request = DeleteGroupsRequest(groups_names=[group_id])
    [result] = asking.coordinator(
        "deleteConsumerGroups", group_id, request,
        lambda answer: [each.error_code for each in answer.results],
    ).results  # fmt: skip
    if result.error_code != Error.NONE:
        raise refused(result.error_code)


def _delete_offsets(given: Given, asking: Asking) -> None:
    group_id, texts = given.one("group"), given.all("topic")
    outcome: dict[TopicPartition, Failure | None] = {}
    partitions = [
        each for text in texts if ":" in text for each in group_resets.partitions_of(text)
    ]
    for topic in (text for text in texts if ":" not in text):
        try:
            partitions += leaders_of(asking, [topic])
        except Failure as failure:
            outcome[topic, -1] = failure
    try:
        failed = _deleted(asking, group_id, partitions)
    except Failure as failure:
        failed = dict.fromkeys(partitions, failure)
    outcome |= {each: failed.get(each) for each in partitions}
    first = next((failed[each] for each in partitions if each in failed), None)
    _print_top(group_id, first)
    _print_outcome(outcome)


def _deleted(
    asking: Asking, group_id: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, Failure]:
    """Those whose offsets could not be deleted."""
    topics: dict[str, list[Any]] = {}
    for topic, partition in dict.fromkeys(partitions):
        each = OffsetDeleteRequest.Partition(partition_index=partition)
        topics.setdefault(topic, []).append(each)
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[OffsetDeleteRequest.Topic(name=name, partitions=topics[name]) for name in topics],
    )
    answer = asking.coordinator(
        "offsetDelete", group_id, request, lambda answer: [answer.error_code]
    )
    if answer.error_code != Error.NONE:
        raise refused(answer.error_code)
    return {
        (topic.name, each.partition_index): refused(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code != Error.NONE
    }


def _print_top(group_id: str, failure: Failure | None) -> None:
    if failure is None:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
        return
    code = code_of(failure)
    if code in ("INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"):
        tell_error(failure.message)
    elif code in ("GROUP_SUBSCRIBED_TO_TOPIC", "UNKNOWN_TOPIC_OR_PARTITION"):
        tell_error("Encountered some partition-level error, see the follow-up details.")
    else:
        tell_error(f"Encountered some unknown error: {code}")


def _print_outcome(outcome: dict[TopicPartition, Failure | None]) -> None:
    width = max([15, *(len(topic) for topic, _ in outcome)])
    rows = [("TOPIC", "PARTITION", "STATUS")]
    for topic, partition in sorted(outcome, key=lambda each: f"{each[0]}{each[1]}"):
        failure = outcome[topic, partition]
        status = "Successful" if failure is None else f"Error: {execution(failure).message}"
        rows.append((topic, str(partition) if partition >= 0 else "-", status))
    for topic, number, status in rows:
        print(f"\n{topic:{width}} {number:10} {status:15}", end="")
    print()
