"""`kafka-topics`: creates, alters, deletes, describes and lists topics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kafkalite.tools import topic_reports
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, WrongUse, illegal_argument, no_number, refused
from kafkalite.tools.java_numbers import whole
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import help_or_version, log, tell, tell_failure, tell_use
from kafkalite.tools.topic_reports import TIMEOUT_MS, topic_names

ACTIONS = ("create", "list", "alter", "describe", "delete")
CONFIG_NAMES = """cleanup.policy compression.gzip.level compression.lz4.level compression.type
compression.zstd.level delete.retention.ms file.delete.delay.ms flush.messages flush.ms
follower.replication.throttled.replicas index.interval.bytes leader.replication.throttled.replicas
local.retention.bytes local.retention.ms max.compaction.lag.ms max.message.bytes
message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.type
min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes
retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
unclean.leader.election.enable""".split()
_CONFIGS_TOOL = "(To alter topic configurations, the kafka-configs tool can be used.)"
_OTHER_REPORTS = frozenset(("topics-with-overrides",))


def _not_with(*actions: str) -> frozenset[str]:
    """All actions but these."""
    return frozenset(ACTIONS) - set(actions)


# In the order in which they are checked.
OPTIONS = [
    Option("bootstrap-server", "REQUIRED: The Kafka server to connect to.", "server to connect to"),
    Option(
        "command-config", "Property file containing configs to be passed to Admin Client.",
        "command config property file",
    ),
    Option("list", "List all available topics."),
    Option("create", "Create a new topic."),
    Option("delete", "Delete a topic."),
    Option("alter", f"Alter the number of partitions and replica assignment. {_CONFIGS_TOOL}"),
    Option("describe", "List details for the given topics."),
    Option(
        "topic",
        "The topic to create, alter, describe or delete. It also accepts a regular expression, "
        "except for --create option.", "topic",
    ),
    Option("topic-id", "The topic-id to describe.", "topic-id"),
    Option(
        "config",
        "A topic configuration override for the topic being created. The following is a list of "
        "valid configurations: " + "".join(f"\n\t{name}" for name in CONFIG_NAMES) + "\nSee the "
        "Kafka documentation for full details on the topic configs. It is supported only in "
        f"combination with --create. {_CONFIGS_TOOL}", "name=value",
        without=_not_with("create", "alter"),
    ),
    Option(
        "delete-config",
        "This option is no longer supported and has been deprecated since 4.0", "name",
    ),
    Option(
        "partitions",
        "The number of partitions for the topic being created or altered. If not supplied with "
        "--create, the topic uses the cluster default. (WARNING: If partitions are increased for a "
        "topic that has a key, the partition logic or ordering of the messages will be affected).",
        "# of partitions", int, without=_not_with("create", "alter"),
    ),
    Option(
        "replication-factor",
        "The replication factor for each partition in the topic being created. If not supplied, "
        "the topic uses the cluster default.", "replication factor", int,
        without=_not_with("create"),
    ),
    Option(
        "replica-assignment",
        "A list of manual partition-to-broker assignments for the topic being created or altered.",
        "broker_id_for_part1_replica1 : broker_id_for_part1_replica2 , "
        "broker_id_for_part2_replica1 : broker_id_for_part2_replica2 , ...",
        without=_not_with("create", "alter"),
    ),
    Option(
        "under-replicated-partitions",
        "If set when describing topics, only show under-replicated partitions.",
        without=_not_with("describe") | _OTHER_REPORTS,
    ),
    Option(
        "under-min-isr-partitions",
        "If set when describing topics, only show partitions whose isr count is less than the "
        "configured minimum.", without=_not_with("describe") | _OTHER_REPORTS,
    ),
    Option(
        "at-min-isr-partitions",
        "If set when describing topics, only show partitions whose isr count is equal to the "
        "configured minimum.", without=_not_with("describe") | _OTHER_REPORTS,
    ),
    Option(
        "unavailable-partitions",
        "If set when describing topics, only show partitions whose leader is not available.",
        without=_not_with("describe") | _OTHER_REPORTS,
    ),
    Option(
        "topics-with-overrides",
        "If set when describing topics, only show topics that have overridden configs.",
        without=_not_with("describe"),
    ),
    Option(
        "if-exists",
        "If set when altering or deleting or describing topics, the action will only execute if "
        "the topic exists.", without=_not_with("alter", "delete", "describe"),
    ),
    Option(
        "if-not-exists",
        "If set when creating topics, the create request will not fail if the topic already "
        "exists, but the request will still be sent.", without=_not_with("create"),
    ),
    Option(
        "exclude-internal",
        "Exclude internal topics when listing or describing topics. By default, the internal "
        "topics are included.", without=_not_with("list", "describe"),
    ),
    Option(
        "partition-size-limit-per-response",
        "The maximum partition size to be included in one DescribeTopicPartitions response.",
        "maximum number of partitions per response", int,
    ),
]  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        ended = _checked(given.read(words), words)
        if ended is not None:
            return ended
        asking = connect(given.one("bootstrap-server"), given.one("command-config"))
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        return tell_failure(failure)
    try:
        _act(given, asking)
    except Failure as failure:
        print(f"Error while executing topic command : {failure}")
        log("ERROR", failure.stack(), "kafka-topics")
        return 1
    finally:
        asking.close()
    return 0


def _checked(given: Given, words: list[str]) -> int | None:
    if not words:
        raise WrongUse("Create, delete, describe, or change a topic.")
    about = "This tool helps to create, delete, describe, or change a topic."
    if (ended := help_or_version(given, about)) is not None:
        return ended
    if given.has("delete-config"):
        tell(
            "delete-config option is no longer supported and deprecated since version 4.0. The "
            "config will be fully removed in future releases."
        )
    if sum(given.has(action) for action in ACTIONS) != 1:
        raise WrongUse(
            "Command must include exactly one action: --list, --describe, --create, --alter or "
            "--delete"
        )
    _check_required(given)
    if given.has("create"):
        given.refuse("replica-assignment", "partitions", "replication-factor")
    given.refuse_together()
    return None


def _check_required(given: Given) -> None:
    if not given.has("bootstrap-server"):
        raise illegal_argument("--bootstrap-server must be specified")
    if given.has("describe") and given.has("if-exists"):
        if not given.has("topic") and not given.has("topic-id"):
            raise WrongUse("--topic or --topic-id is required to describe a topic")
        if given.has("topic") and given.has("topic-id"):
            print(
                "Only topic id will be used when both --topic and --topic-id are specified and "
                "topicId is not Uuid.ZERO_UUID"
            )
    if not given.has("list") and not given.has("describe"):
        given.require("topic")
    if given.has("alter"):
        if given.has("config"):
            raise WrongUse(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                f'"[alter]" {_CONFIGS_TOOL}'
            )
        given.require("partitions")


def _act(given: Given, asking: Asking) -> None:
    if given.has("create"):
        _create(given, asking)
    elif given.has("alter"):
        _alter(given, asking)
    elif given.has("delete"):
        _delete(given, asking)
    elif given.has("describe"):
        topic_reports.describe(given, asking)
    else:
        print("\n".join(topic_names(given, asking)))


def _create(given: Given, asking: Asking) -> None:
    name = given.one("topic")
    if not name:
        message = f"The given topic name '{name}' cannot be represented in a request."
        raise refused(Error.INVALID_TOPIC_EXCEPTION, message)
    partitions, factor = given.one("partitions"), given.one("replication-factor")
    assignment = _assignment(given)
    configs = dict(_config(text) for text in given.all("config"))
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
            "('_') could collide. To avoid issues it is best to use either, but not both."
        )
    if factor is not None and not 1 <= factor <= 32767:
        raise illegal_argument("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise illegal_argument("The partitions must be greater than 0")
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=-1 if partitions is None else partitions,
        replication_factor=-1 if factor is None else factor,
        assignments=[
            CreateTopicsRequest.Assignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(assignment)
        ],
        configs=[CreateTopicsRequest.Config(name=key, value=configs[key]) for key in configs],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    answer = asking.controller("createTopics", request, lambda answer: _codes(answer.topics))
    [created] = answer.topics
    if created.error_code == Error.TOPIC_ALREADY_EXISTS and given.has("if-not-exists"):
        return
    _raise_refusals(answer.topics)
    print(f"Created topic {name}.")


def _config(text: str) -> tuple[str, str]:
    parts = re.split(r"\s*=\s*", text)
    while parts and not parts[-1]:
        parts.pop()  # as Java splits
    if len(parts) != 2:
        raise illegal_argument(
            "requirement failed: Invalid topic config: all configs to be added must be in the "
            'format "key=val".'
        )
    return parts[0].strip(), parts[1].strip()


def _assignment(given: Given) -> list[list[int]]:
    """The brokers of each partition, as given with colons and commas."""
    text = given.one("replica-assignment")
    found: list[list[int]] = []
    for number, part in enumerate(text.split(",") if text else []):
        brokers = [_number(broker.strip()) for broker in part.split(":")]
        twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
        if twice:
            raise Failure(
                "org.apache.kafka.tools.AdminCommandFailedException",
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, twice)),
            )
        found.append(brokers)
        if len(brokers) != len(found[0]):
            raise Failure(
                "org.apache.kafka.tools.AdminOperationException",
                f"Partition {number} has different replication factor: {brokers}",
            )
    return found


def _number(text: str) -> int:
    try:
        return whole(text)
    except ValueError:
        raise no_number(text) from None


def _alter(given: Given, asking: Asking) -> None:
    count = given.one("partitions")
    names = _existing(given, asking)
    assignment = _assignment(given)
    topics = [
        CreatePartitionsRequest.Topic(name=name, count=count, assignments=assignments)
        for name, assignments in _added(asking, names, assignment)
    ]
    if topics:
        request = CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
        answer = asking.controller(
            "createPartitions", request, lambda answer: _codes(answer.results)
        )
        _raise_refusals(answer.results)


def _added(
    asking: Asking, names: list[str], assignment: list[list[int]]
) -> Iterator[tuple[str, list[Any] | None]]:
    """Each topic with the brokers of the partitions that it is to have more, if any were given."""
    if not assignment:
        yield from ((name, None) for name in names)
        return
    for topic in topic_reports.described(asking, names):
        new = assignment[len(topic.partitions) :]
        yield topic.name, [CreatePartitionsRequest.Assignment(broker_ids=each) for each in new]


def _delete(given: Given, asking: Asking) -> None:
    topics = [DeleteTopicsRequest.Topic(name=name) for name in _existing(given, asking)]
    if topics:
        request = DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
        answer = asking.controller("deleteTopics", request, lambda answer: _codes(answer.responses))
        _raise_refusals(answer.responses)


def _existing(given: Given, asking: Asking) -> list[str]:
    names = topic_names(given, asking)
    topic_reports.require_some(given, names)
    return names


def _codes(results: list[Any]) -> list[int]:
    return [result.error_code for result in results]


def _raise_refusals(results: list[Any]) -> None:
    for result in results:
        if result.error_code != Error.NONE:
            raise refused(result.error_code, result.error_message)
