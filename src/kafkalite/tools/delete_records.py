"""`kafka-delete-records`: the first records of partitions, up to an offset, are gone."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteRecordsRequest
from kafkalite.tools import json_fields
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, WrongUse, execution, refused
from kafkalite.tools.files import read_text
from kafkalite.tools.java_maps import TopicPartition, partitions_in_map_order
from kafkalite.tools.led_partitions import MOVING, ask_leaders
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import begin, log, tell_failure, tell_use

_ABOUT = "This tool helps to delete records of the given partitions down to the specified offset."
_PACKAGE = "org.apache.kafka.tools."
_REQUEST_TIMEOUT_MS = 30_000

OPTIONS = [
    Option(
        "bootstrap-server", "REQUIRED: The server to connect to.",
        "server(s) to use for bootstrapping",
    ),
    Option(
        "offset-json-file",
        "REQUIRED: The JSON file with offset per partition. The format to use is:\n"
        '{"partitions":\n'
        '  [{"topic": "foo", "partition": 1, "offset": 1}],\n'
        ' "version":1\n'
        "}",
        "Offset json file path",
    ),
    Option(
        "command-config", "A property file containing configs to be passed to Admin Client.",
        "command config property file path",
    ),
]  # fmt: skip

Outcome = int | Failure


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        if (ended := begin(given, words, _ABOUT)) is not None:
            return ended
        given.require("bootstrap-server", "offset-json-file")
        return _run(given)
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_failure(failure)


def _run(given: Given) -> int:
    asking = connect(given.one("bootstrap-server"), given.one("command-config"))
    try:
        offsets = _offsets(read_text(given.one("offset-json-file")))
        print("Executing records delete operation")
        print("Records delete operation completed:")
        outcomes = ask_leaders(
            asking, "deleteRecords", offsets,
            lambda leader, places: _delete_at(asking, leader, {at: offsets[at] for at in places}),
        )  # fmt: skip
    finally:
        asking.close()
    for place in partitions_in_map_order(outcomes):
        outcome, shown = outcomes[place], f"partition: {place[0]}-{place[1]}"
        if isinstance(outcome, Failure):
            print(f"{shown}\terror: {execution(outcome).message}")
        else:
            print(f"{shown}\tlow_watermark: {outcome}")
    return 0


def _offsets(text: str) -> dict[TopicPartition, int]:
    """Partitions, and the offsets before which their records go."""
    operation = f"{_PACKAGE}AdminOperationException"
    no_json = Failure(operation, "The input string is not a valid JSON")
    whole = json_fields.as_object(json_fields.parsed(text, no_json))
    version = json_fields.field({"version": 1, **whole}, "version", int)
    if version != 1:
        raise Failure(operation, f"Not supported version field value {version}")
    if "partitions" not in whole:
        raise Failure(operation, "Missing partitions field")
    found = [
        (
            (json_fields.field(each, "topic", str), json_fields.field(each, "partition", int)),
            json_fields.field(each, "offset", int, "Long"),
        )
        for each in json_fields.as_array(whole["partitions"])
    ]
    twice = [place for place, count in Counter(place for place, _ in found).items() if count > 1]
    if twice:
        names = ",".join(f"{topic}-{index}" for topic, index in partitions_in_map_order(twice))
        raise Failure(
            f"{_PACKAGE}AdminCommandFailedException",
            f"Offset json file contains duplicate topic partitions: {names}",
        )
    return dict(found)


def _delete_at(
    asking: Asking, leader: int, offsets: dict[TopicPartition, int]
) -> dict[TopicPartition, Outcome]:
    topics: dict[str, list[Any]] = {}
    for (topic, index), offset in offsets.items():
        each = DeleteRecordsRequest.Partition(partition_index=index, offset=offset)
        topics.setdefault(topic, []).append(each)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.Topic(name=name, partitions=topics[name]) for name in topics],
        timeout_ms=_REQUEST_TIMEOUT_MS,
    )
    answer = asking.broker("deleteRecords", leader, request)
    return {
        (topic.name, each.partition_index): _outcome(asking, topic.name, each)
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code not in MOVING
    }


def _outcome(asking: Asking, topic: str, answer: Any) -> Outcome:
    code = Error(answer.error_code)
    if code is Error.NONE:
        return int(answer.low_watermark)
    log(
        "ERROR",
        f"[AdminClient clientId={asking.client_id}] DeleteRecords request for topic partition "
        f"{topic}-{answer.partition_index} failed due to an unexpected error {code.name}",
        "org.apache.kafka.clients.admin.internals.DeleteRecordsHandler",
    )
    return refused(code)
