"""`kafka-leader-election`: partitions are led by the replica that is to lead them, or by any."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ElectLeadersRequest
from kafkalite.tools import json_fields
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, WrongUse, execution, refused
from kafkalite.tools.files import read_text
from kafkalite.tools.java_maps import TopicPartition, partitions_in_map_order
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import begin, tell_failure, tell_use

_ABOUT = (
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections "
    "supported are preferred replicas and unclean replicas."
)
_PACKAGE = "org.apache.kafka.tools."
_TIMEOUT_S = 30.0
_TYPES = ("PREFERRED", "UNCLEAN")
_WHICH = ("topic", "all-topic-partitions", "path-to-json-file")

OPTIONS = [
    Option(
        "bootstrap-server",
        "A hostname and port for the broker to connect to, in the form host:port. Multiple comma "
        "separated URLs can be given. REQUIRED.", "host:port",
    ),
    Option(
        "admin.config",
        "(DEPRECATED) Configuration properties files to pass to the admin client. This option will "
        "be removed in a future version. Use --command-config instead.", "config file",
    ),
    Option(
        "command-config", "Config properties file to pass to the admin client.", "Config file",
    ),
    Option(
        "path-to-json-file",
        "The JSON file with the list  of partition for which leader elections should be performed. "
        "This is an example format. \n"
        '{"partitions":\n'
        '\t[{"topic": "foo", "partition": 1},\n'
        '\t {"topic": "foobar", "partition": 2}]\n'
        "}\n"
        "Not allowed if --all-topic-partitions or --topic flags are specified.",
        "Path to JSON file",
    ),
    Option(
        "topic",
        "Name of topic for which to perform an election. Not allowed if --path-to-json-file or "
        "--all-topic-partitions is specified.", "topic name",
    ),
    Option(
        "partition",
        "Partition id for which to perform an election. REQUIRED if --topic is specified.",
        "partition id", int,
    ),
    Option(
        "all-topic-partitions",
        "Perform election on all of the eligible topic partitions based on the type of election "
        "(see the --election-type flag). Not allowed if --topic or --path-to-json-file is "
        "specified.",
    ),
    Option(
        "election-type",
        'Type of election to attempt. Possible values are "preferred" for preferred leader '
        'election or "unclean" for unclean leader election. If preferred election is selection, '
        "the election is only performed if the current leader is not the preferred leader for the "
        "topic partition. If unclean election is selected, the election is only performed if there "
        "are no leader for the topic partition. REQUIRED.", "election type", choices=_TYPES,
    ),
]  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        if (ended := begin(given, words, _ABOUT)) is not None:
            return ended
        _check(given)
        _elect(given)
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_failure(failure)
    return 0


def _failed(message: str, cause: Failure | None = None) -> Failure:
    return Failure(f"{_PACKAGE}AdminCommandFailedException", message, cause)


def _check(given: Given) -> None:
    given.refuse("admin.config", "command-config")
    _need(given, "bootstrap-server", "election-type")
    if sum(given.has(name) for name in _WHICH) != 1:
        raise _failed(
            f"One and only one of the following options is required: {', '.join(_WHICH)}"
        )
    if given.has("topic"):
        _need(given, "partition")
    elif given.has("partition"):
        raise _failed("Option partition is only allowed if topic is used")


def _need(given: Given, *names: str) -> None:
    if missing := [name for name in names if not given.has(name)]:
        raise _failed(f"Missing required option(s): {', '.join(missing)}")


def _elect(given: Given) -> None:
    kind, places, config = given.one("election-type"), _places(given), given.one("command-config")
    if given.has("admin.config"):
        print(
            "Option --admin.config has been deprecated and will be removed in a future version. "
            "Use --command-config instead."
        )
        config = given.one("admin.config")
    asking = connect(given.one("bootstrap-server"), config, timeout_s=_TIMEOUT_S)
    try:
        _tell(kind, _outcomes(asking, kind, places))
    finally:
        asking.close()


def _places(given: Given) -> list[TopicPartition] | None:
    """The partitions; None for all."""
    if given.has("topic"):
        return [(given.one("topic"), given.one("partition"))]
    if given.has("all-topic-partitions"):
        return None
    operation = f"{_PACKAGE}AdminOperationException"
    try:
        text = read_text(given.one("path-to-json-file"))
        empty = Failure(operation, "Replica election data is empty")
        whole = json_fields.as_object(json_fields.parsed(text, empty))
        if "partitions" not in whole:
            raise Failure(operation, 'Replica election data is missing "partitions" field')
        found = [
            (json_fields.field(each, "topic", str), json_fields.field(each, "partition", int))
            for each in json_fields.as_array(whole["partitions"])
        ]
    except Failure as failure:
        if failure.java == operation:
            raise
        shown = f"{failure.java}: {failure.message}"
        raise Failure("java.lang.RuntimeException", shown, failure) from failure
    if twice := [place for place, count in Counter(found).items() if count > 1]:
        names = ", ".join(f"{topic}-{index}" for topic, index in partitions_in_map_order(twice))
        message = f"Replica election data contains duplicate partitions: [{names}]"
        raise Failure(operation, message)
    return found


def _outcomes(
    asking: Asking, kind: str, places: list[TopicPartition] | None
) -> dict[TopicPartition, Any]:
    """The part of the answer that is of each partition."""
    topics: dict[str, list[int]] = {}
    for topic, index in places or ():
        topics.setdefault(topic, []).append(index)
    request = ElectLeadersRequest(
        election_type=_TYPES.index(kind), timeout_ms=int(1000 * _TIMEOUT_S),
        topic_partitions=None if places is None else [
            ElectLeadersRequest.TopicPartitions(topic=name, partitions=topics[name])
            for name in topics
        ],
    )  # fmt: skip
    try:
        answer = asking.controller("electLeaders", request, lambda answer: [answer.error_code])
    except Failure as failure:
        if not failure.java.endswith(".TimeoutException"):
            raise
        print("Timeout waiting for election results")
        raise _failed("Timeout waiting for election results", failure) from failure
    if answer.error_code == Error.CLUSTER_AUTHORIZATION_FAILED:
        print("Not authorized to perform leader election")
        raise _failed("Not authorized to perform leader election")
    if answer.error_code != Error.NONE:
        cause = execution(refused(answer.error_code))
        raise Failure("java.lang.RuntimeException", f"{cause.java}: {cause.message}", cause)
    return {
        (topic.topic, each.partition_id): each
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def _tell(kind: str, outcomes: dict[TopicPartition, Any]) -> None:
    elected, not_needed, failed = [], [], {}
    for place in partitions_in_map_order(outcomes):
        shown, each = f"{place[0]}-{place[1]}", outcomes[place]
        if each.error_code == Error.NONE:
            elected.append(shown)
        elif each.error_code == Error.ELECTION_NOT_NEEDED:
            not_needed.append(shown)
        else:
            failed[shown] = refused(each.error_code, each.error_message)
    if elected:
        print(
            f"Successfully completed leader election ({kind}) for partitions {', '.join(elected)}"
        )
    if not_needed:
        print(f"Valid replica already elected for partitions {', '.join(not_needed)}")
    for shown, failure in failed.items():
        print(
            f"Error completing leader election ({kind}) for partition: {shown}: "
            f"{failure.java}: {failure.message}"
        )
    if failed:
        whole = _failed(f"{len(failed)} replica(s) could not be elected")
        whole.suppressed = list(failed.values())
        raise whole
