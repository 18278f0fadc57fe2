"""`kafka-groups`: lists groups of all types."""

from __future__ import annotations

from typing import Any

from kafkalite.tools.asking import connect
from kafkalite.tools.failures import Failure, WrongUse, illegal_argument
from kafkalite.tools.group_questions import CONSUMER, list_groups
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import help_or_version, log, tell_failure, tell_use, wrong_words

_ABOUT = "This tool helps to list groups of all types."
_TYPES = ("classic", "consumer", "share", "streams")
_FILTERS = ("consumer", "share", "streams")
_WIDTH = 20

OPTIONS = [
    Option(
        "bootstrap-server", "REQUIRED: The Kafka server to connect to.", "server to connect to",
        is_required=True,
    ),
    Option(
        "command-config", "Property file containing configs to be passed to Admin Client.",
        "command config property file",
    ),
    Option("list", "List the groups."),
    Option(
        "group-type",
        "Filter the groups based on group type. Valid types are: 'classic', 'consumer', 'share' "
        "and 'streams'.", "type",
    ),
    Option("protocol", "Filter the groups based on protocol type.", "protocol"),
    Option(
        "consumer",
        "Filter the groups to show all kinds of consumer groups, including classic and simple "
        "consumer groups. This matches group type 'consumer', and group type 'classic' where the "
        "protocol type is 'consumer' or empty.",
    ),
    Option("share", "Filter the groups to show share groups."),
    Option("streams", "Filter the groups to show streams groups."),
]  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        with wrong_words():
            given.read(words)
        if (ended := help_or_version(given, _ABOUT)) is not None:
            return ended
        _check(given)
        asking = connect(given.one("bootstrap-server"), given.one("command-config"))
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_failure(failure)
    try:
        _print([each for each in list_groups(asking) if _is_wanted(given, each)])
    except Failure as failure:
        print(f"Error while executing groups command : {failure.message}")
        log("ERROR", failure.stack(), "kafka-groups")
        return 1
    finally:
        asking.close()
    return 0


def _check(given: Given) -> None:
    if not given.has("list"):
        raise WrongUse("Command must include exactly one action: --list.")
    kind = given.one("group-type")
    if kind is not None and kind.lower() not in _TYPES:
        raise illegal_argument("--group-type must be a valid group type.")
    for used in _FILTERS:
        others = (name for name in ("consumer", "group-type", "protocol", "share", "streams"))
        given.refuse(used, *(name for name in others if name != used))


def _is_wanted(given: Given, group: Any) -> bool:
    kind, protocol = given.one("group-type"), given.one("protocol")
    if kind is not None or protocol is not None:
        is_kind = kind is None or group.group_type.lower() == kind.lower()
        return is_kind and protocol in (None, group.protocol_type)
    if given.has("consumer"):
        return group.protocol_type in ("", "consumer") or group.group_type == CONSUMER
    chosen = [name for name in _FILTERS if given.has(name)]
    return not chosen or group.group_type.lower() in chosen


def _print(groups: list[Any]) -> None:
    rows = [(each.group_id, each.group_type.capitalize(), each.protocol_type) for each in groups]
    width = max([_WIDTH, *(len(cell) for row in rows for cell in row)])
    print(f"{'GROUP':{width}} {'TYPE':{width}} {'PROTOCOL':{width}}")
    for row in rows:
        print("".join(f"{cell:{width}} " for cell in row))
