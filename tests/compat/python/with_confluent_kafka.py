"""confluent-kafka 2.0 (librdkafka 2.0) behind the commands of client.py.

librdkafka has threads of its own, so members keep their place in a group between two commands. The
library deletes no records.
"""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

Command = dict[str, Any]
Record = dict[str, Any]

DEADLINE_S = 30
LATEST, EARLIEST = -1, -2


class Session:
    """One member and one transactional producer at most."""

    def __init__(self, bootstrap: str) -> None:
        self.config = {"bootstrap.servers": bootstrap}

    def act(self, c: Command) -> Any:
        return COMMANDS[c["do"]](self, c)

    def consumer(self, c: Command, **config: Any) -> Consumer:
        isolation = "read_committed" if c["committed"] else "read_uncommitted"
        return Consumer({
            **self.config, "group.id": c.get("group", "none"), "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "isolation.level": isolation, **config,
        })

    # --- records ------------------------------------------------------------------------------

    def produce(self, c: Command) -> list[Record]:
        config = {"message.max.bytes": c["max_bytes"]} if c["max_bytes"] else {}
        producer = Producer({
            **self.config, "compression.type": c["codec"], "acks": c["acks"], "linger.ms": 20,
            "partitioner": "murmur2_random", **config,
        })
        return send(producer, c)

    def read(self, c: Command) -> list[Record]:
        consumer = self.consumer(c)
        consumer.assign([TopicPartition(c["topic"], c["partition"], c["offset"])])
        try:
            return take(consumer, c)
        finally:
            consumer.close()

    # --- groups -------------------------------------------------------------------------------

    def join(self, c: Command) -> None:
        config: dict[str, Any] = {"heartbeat.interval.ms": 200}
        if c["strategy"] == "cooperative":
            config["partition.assignment.strategy"] = "cooperative-sticky"
        if c["instance"]:
            config["group.instance.id"] = c["instance"]
        self.member = self.consumer(c, **config)
        self.assigned = 0
        self.member.subscribe([c["topic"]], on_assign=self.count)

    def count(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned += len(partitions)

    def poll(self, c: Command) -> list[Record]:
        return take(self.member, c)

    def assignment(self, c: Command) -> dict[str, Any]:
        owned = [each.partition for each in self.member.assignment()]
        return {"partitions": owned, "assigned": self.assigned}

    def commit(self, c: Command) -> None:
        self.member.commit(asynchronous=False)

    def leave(self, c: Command) -> None:
        self.member.close()

    # --- transactions -------------------------------------------------------------------------

    def init(self, c: Command) -> None:
        self.producer = Producer({
            **self.config, "transactional.id": c["id"], "transaction.timeout.ms": c["timeout_ms"],
            "message.timeout.ms": c["timeout_ms"],
        })
        self.producer.init_transactions(DEADLINE_S)

    def begin(self, c: Command) -> None:
        self.producer.begin_transaction()

    def send(self, c: Command) -> list[Record]:
        return send(self.producer, c)

    def offsets(self, c: Command) -> None:
        # Of the group alone: no member, so that the coordinator has none to check.
        outside = self.consumer(c)
        offsets = [TopicPartition(c["topic"], c["partition"], c["offset"])]
        group = outside.consumer_group_metadata()
        self.producer.send_offsets_to_transaction(offsets, group, DEADLINE_S)
        outside.close()

    def end(self, c: Command) -> None:
        self.producer.commit_transaction(DEADLINE_S)

    def abort(self, c: Command) -> None:
        self.producer.abort_transaction(DEADLINE_S)

    # --- looking up ---------------------------------------------------------------------------

    def look_up(self, c: Command) -> int:
        consumer, partition = self.consumer(c), TopicPartition(c["topic"], c["partition"])
        try:
            if c["timestamp"] in (LATEST, EARLIEST):
                low, high = consumer.get_watermark_offsets(partition, DEADLINE_S)
                return high if c["timestamp"] == LATEST else low
            partition.offset = c["timestamp"]
            [found] = consumer.offsets_for_times([partition], DEADLINE_S)
            return found.offset
        finally:
            consumer.close()


def send(producer: Producer, c: Command) -> list[Record]:
    """Places the records, and tells where they lie; raises the first refusal."""
    reports: dict[int, tuple[Any, Message]] = {}
    where = {} if c["partition"] is None else {"partition": c["partition"]}
    for index, each in enumerate(c["records"]):
        producer.produce(
            c["topic"], each["value"], each["key"], timestamp=each["timestamp"],
            headers=each["headers"], on_delivery=reporter(reports, index), **where,
        )
    producer.flush(DEADLINE_S)
    placed = [reports[index] for index in range(len(c["records"]))]
    for error, _ in placed:
        if error is not None:
            raise KafkaException(error)
    return [
        {"partition": at.partition(), "offset": at.offset(), "key": at.key()} for _, at in placed
    ]


def reporter(reports: dict[int, tuple[Any, Message]], index: int) -> Callable[..., None]:
    def report(error: Any, message: Message) -> None:
        reports[index] = (error, message)

    return report


def take(consumer: Consumer, c: Command) -> list[Record]:
    """Polls until so many records came or the time is over."""
    taken: list[Record] = []
    end = time.monotonic() + c["wait_ms"] / 1000
    while len(taken) < c["count"] and (left := end - time.monotonic()) > 0:
        message = consumer.poll(left)
        if message is not None:
            taken.append(record(message))
    return taken


def record(message: Message) -> Record:
    if message.error() is not None:
        raise KafkaException(message.error())
    headers = [{"name": name, "value": value} for name, value in message.headers() or ()]
    return {
        "partition": message.partition(), "offset": message.offset(),
        "timestamp": message.timestamp()[1], "key": message.key(), "value": message.value(),
        "headers": headers,
    }


# --- administration -------------------------------------------------------------------------------


def administration(act: Callable[[AdminClient, Command], Any]) -> Callable[..., Any]:
    """A command that is done with an admin client."""
    return lambda session, c: act(AdminClient(session.config), c)


def one(futures: dict[Any, Any]) -> Any:
    """The result of the one thing that was asked."""
    [future] = futures.values()
    return future.result(DEADLINE_S)


def create(admin: AdminClient, c: Command) -> None:
    one(admin.create_topics([NewTopic(c["topic"], c["partitions"], 1, config=c["configs"])]))


def delete(admin: AdminClient, c: Command) -> None:
    one(admin.delete_topics([c["topic"]]))


def topics(admin: AdminClient, c: Command) -> list[str]:
    return list(admin.list_topics(timeout=DEADLINE_S).topics)


def partitions(admin: AdminClient, c: Command) -> list[int]:
    return list(admin.list_topics(c["topic"], DEADLINE_S).topics[c["topic"]].partitions)


def grow(admin: AdminClient, c: Command) -> None:
    one(admin.create_partitions([NewPartitions(c["topic"], c["partitions"])]))


def alter(admin: AdminClient, c: Command) -> None:
    one(admin.alter_configs([resource(c, set_config=c["configs"])]))


def configs(admin: AdminClient, c: Command) -> dict[str, str]:
    entries = one(admin.describe_configs([resource(c)]))
    return {name: entry.value for name, entry in entries.items()}


def resource(c: Command, **config: Any) -> ConfigResource:
    return ConfigResource(ConfigResource.Type.TOPIC, c["topic"], **config)


def groups(admin: AdminClient, c: Command) -> list[str]:
    return [each.group_id for each in admin.list_consumer_groups().result(DEADLINE_S).valid]


def group(admin: AdminClient, c: Command) -> dict[str, Any]:
    found = one(admin.describe_consumer_groups([c["group"]]))
    return {"state": found.state.name.title(), "members": len(found.members)}


def forget(admin: AdminClient, c: Command) -> None:
    one(admin.delete_consumer_groups([c["group"]]))


def offset(admin: AdminClient, c: Command) -> int:
    asked = ConsumerGroupTopicPartitions(c["group"], [TopicPartition(c["topic"], c["partition"])])
    return one(admin.list_consumer_group_offsets([asked])).topic_partitions[0].offset


def move(admin: AdminClient, c: Command) -> None:
    to = [TopicPartition(c["topic"], c["partition"], c["offset"])]
    one(admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(c["group"], to)]))


COMMANDS: dict[str, Callable[..., Any]] = {
    "produce": Session.produce, "read": Session.read,
    "join": Session.join, "poll": Session.poll, "assignment": Session.assignment,
    "commit": Session.commit, "leave": Session.leave,
    "init": Session.init, "begin": Session.begin, "send": Session.send,
    "offsets": Session.offsets, "end": Session.end, "abort": Session.abort,
    "look_up": Session.look_up, "move": administration(move),
    "create": administration(create), "delete": administration(delete),
    "topics": administration(topics), "partitions": administration(partitions),
    "grow": administration(grow), "alter": administration(alter),
    "configs": administration(configs), "groups": administration(groups),
    "group": administration(group), "forget": administration(forget),
    "offset": administration(offset),
}
