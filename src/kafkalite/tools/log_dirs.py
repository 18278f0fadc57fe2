"""`kafka-log-dirs`: the directories of brokers, and how large the partitions in them are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeClusterRequest, DescribeLogDirsRequest
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, WrongUse, execution, no_number, refused
from kafkalite.tools.java_maps import in_map_order, partitions_in_map_order
from kafkalite.tools.java_numbers import whole
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import begin, tell, tell_failure, tell_use

_ABOUT = "This tool helps to query log directory usage on the specified brokers."

OPTIONS = [
    Option(
        "bootstrap-server", "REQUIRED: the server(s) to use for bootstrapping",
        "The server(s) to use for bootstrapping",
    ),
    Option(
        "command-config", "Property file containing configs to be passed to Admin Client.",
        "Admin client property file",
    ),
    Option("describe", "Describe the specified log directories on the specified brokers."),
    Option(
        "topic-list",
        'The list of topics to be queried in the form "topic1,topic2,topic3". All topics will be '
        "queried if no topic list is specified", "Topic list", default="",
    ),
    Option(
        "broker-list",
        'The list of brokers to be queried in the form "0,1,2". All brokers in the cluster will be '
        "queried if no broker list is specified", "Broker list", default="",
    ),
]  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        if (ended := begin(given, words, _ABOUT)) is not None:
            return ended
        given.require("bootstrap-server", "describe")
        asking = connect(
            given.one("bootstrap-server"), given.one("command-config"), "log-dirs-tool"
        )
        try:
            return _describe(asking, given)
        finally:
            asking.close()
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_failure(failure)


def _describe(asking: Asking, given: Given) -> int:
    there = {each.broker_id for each in asking.any("listNodes", DescribeClusterRequest()).brokers}
    wanted = {_number(text) for text in _parts(given.one("broker-list"))} or there
    if missing := wanted - there:
        tell(
            f"ERROR: The given brokers do not exist from --broker-list: {_listed(missing)}. "
            f"Current existent brokers: {_listed(there)}"
        )
        return 1
    print("Querying brokers for log directories information")
    topics = _parts(given.one("topic-list"))
    brokers = [
        {"broker": broker, "logDirs": _directories(asking, broker, topics)}
        for broker in sorted(wanted)
    ]
    print(f"Received log directory information from brokers {_listed(wanted)}")
    whole = {"brokers": brokers, "version": 1}
    print(json.dumps(whole, separators=(",", ":"), ensure_ascii=False))
    return 0


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _number(text: str) -> int:
    try:
        return whole(text)
    except ValueError:
        raise no_number(text) from None


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(str(each) for each in sorted(brokers))


def _directories(asking: Asking, broker: int, topics: list[str]) -> list[dict[str, Any]]:
    answer = asking.broker("describeLogDirs", broker, DescribeLogDirsRequest(topics=None))
    if answer.error_code != Error.NONE:
        raise execution(refused(answer.error_code))
    found = {each.log_dir: each for each in answer.results}
    return [
        {
            "partitions": _partitions(found[name], topics),
            "error": refused(found[name].error_code).java if found[name].error_code else None,
            "logDir": name,
        }
        for name in in_map_order(found)
    ]


def _partitions(directory: Any, topics: list[str]) -> list[dict[str, Any]]:
    found = {
        (topic.name, each.partition_index): each
        for topic in directory.topics
        if not topics or topic.name in topics
        for each in topic.partitions
    }
    return [
        {
            "partition": f"{place[0]}-{place[1]}",
            "size": found[place].partition_size,
            "offsetLag": found[place].offset_lag,
            "isFuture": found[place].is_future_key,
        }
        for place in partitions_in_map_order(found)
    ]
