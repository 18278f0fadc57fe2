"""aiokafka 0.8 behind the commands of client.py.

Its event loop turns in a thread of its own, so that members keep their place in a group between
two commands. The library deletes no records and no groups, and knows no static members.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient
from kafka import TopicPartition
from kafka.admin import NewPartitions, NewTopic
from kafka.admin.config_resource import ConfigResource, ConfigResourceType
from kafka.errors import for_code

Command = dict[str, Any]

LATEST, EARLIEST = -1, -2


class Session:
    """One member and one transactional producer at most."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def act(self, c: Command) -> Any:
        return asyncio.run_coroutine_threadsafe(COMMANDS[c["do"]](self, c), self._loop).result()

    @asynccontextmanager
    async def consumer(self, **config: Any) -> AsyncIterator[AIOKafkaConsumer]:
        async with AIOKafkaConsumer(bootstrap_servers=self.bootstrap, **config) as consumer:
            await asyncio.sleep(0)  # its tasks must have begun, or it cannot be closed
            yield consumer

    # --- records ------------------------------------------------------------------------------

    async def produce(self, c: Command) -> list[dict[str, Any]]:
        codec = None if c["codec"] == "none" else c["codec"]
        config = {"max_request_size": c["max_bytes"]} if c["max_bytes"] else {}
        acks = "all" if c["acks"] == "all" else int(c["acks"])
        async with AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, compression_type=codec, acks=acks, linger_ms=20,
            **config,
        ) as producer:
            return await send(producer, c)

    async def read(self, c: Command) -> list[dict[str, Any]]:
        async with self.consumer(**reading(c)) as consumer:
            consumer.assign([partition_of(c)])
            consumer.seek(partition_of(c), c["offset"])
            return await take(consumer, c)

    # --- groups -------------------------------------------------------------------------------

    async def join(self, c: Command) -> None:
        self.member = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=c["group"], heartbeat_interval_ms=200,
            **reading(c),
        )
        self.assigned = Assigned()
        await self.member.start()
        self.member.subscribe([c["topic"]], listener=self.assigned)

    async def poll(self, c: Command) -> list[dict[str, Any]]:
        return await take(self.member, c)

    async def assignment(self, c: Command) -> dict[str, Any]:
        owned = [each.partition for each in self.member.assignment()]
        return {"partitions": owned, "assigned": self.assigned.count}

    async def commit(self, c: Command) -> None:
        await self.member.commit()

    async def leave(self, c: Command) -> None:
        await self.member.stop()

    # --- transactions -------------------------------------------------------------------------

    async def init(self, c: Command) -> None:
        self.producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, transactional_id=c["id"],
            transaction_timeout_ms=c["timeout_ms"],
        )
        await self.producer.start()

    async def begin(self, c: Command) -> None:
        await self.producer.begin_transaction()

    async def send(self, c: Command) -> list[dict[str, Any]]:
        return await send(self.producer, c)

    async def offsets(self, c: Command) -> None:
        offsets = {partition_of(c): c["offset"]}
        await self.producer.send_offsets_to_transaction(offsets, c["group"])

    async def end(self, c: Command) -> None:
        await self.producer.commit_transaction()

    async def abort(self, c: Command) -> None:
        await self.producer.abort_transaction()

    # --- looking up ---------------------------------------------------------------------------

    async def look_up(self, c: Command) -> int:
        partition = partition_of(c)
        async with self.consumer() as consumer:
            if c["timestamp"] == LATEST:
                return (await consumer.end_offsets([partition]))[partition]
            if c["timestamp"] == EARLIEST:
                return (await consumer.beginning_offsets([partition]))[partition]
            found = await consumer.offsets_for_times({partition: c["timestamp"]})
            return found[partition].offset

    async def move(self, c: Command) -> None:
        async with self.consumer(group_id=c["group"], enable_auto_commit=False) as consumer:
            consumer.assign([partition_of(c)])
            await consumer.commit({partition_of(c): c["offset"]})


class Assigned(ConsumerRebalanceListener):
    """Counts how many partitions were ever assigned, again after each loss."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self.count += len(list(assigned))


def partition_of(c: Command) -> TopicPartition:
    return TopicPartition(c["topic"], c["partition"])


def reading(c: Command) -> dict[str, Any]:
    return {
        "auto_offset_reset": "earliest", "enable_auto_commit": False,
        "isolation_level": "read_committed" if c["committed"] else "read_uncommitted",
    }


async def send(producer: AIOKafkaProducer, c: Command) -> list[dict[str, Any]]:
    sending = [
        await producer.send(
            c["topic"], each["value"], key=each["key"], partition=c["partition"],
            timestamp_ms=each["timestamp"] or None, headers=each["headers"],
        )
        for each in c["records"]
    ]
    placed = zip(c["records"], await asyncio.gather(*sending), strict=True)
    return [
        {"partition": at.partition, "offset": at.offset, "key": each["key"]} for each, at in placed
    ]


async def take(consumer: AIOKafkaConsumer, c: Command) -> list[dict[str, Any]]:
    """Polls until so many records came or the time is over."""
    taken: list[dict[str, Any]] = []
    end = time.monotonic() + c["wait_ms"] / 1000
    while len(taken) < c["count"] and (left := end - time.monotonic()) > 0:
        wanted = {"timeout_ms": int(left * 1000), "max_records": c["count"] - len(taken)}
        for records in (await consumer.getmany(**wanted)).values():
            taken += map(record, records)
    return taken


def record(found: Any) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in found.headers]
    return {
        "partition": found.partition, "offset": found.offset, "timestamp": found.timestamp,
        "key": found.key, "value": found.value, "headers": headers,
    }


# --- administration -------------------------------------------------------------------------------


def administration(act: Callable[[AIOKafkaAdminClient, Command], Any]) -> Callable[..., Any]:
    """A command that is done with an admin client, which is closed again."""

    async def do(session: Session, c: Command) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=session.bootstrap)
        await admin.start()
        try:
            return await act(admin, c)
        finally:
            await admin.close()

    return do


def check(codes: Iterable[int]) -> None:
    for code in codes:
        if code:
            raise for_code(code)


async def create(admin: AIOKafkaAdminClient, c: Command) -> None:
    new = NewTopic(c["topic"], c["partitions"], 1, topic_configs=c["configs"])
    check(error[1] for error in (await admin.create_topics([new])).topic_errors)


async def delete(admin: AIOKafkaAdminClient, c: Command) -> None:
    check(code for _, code in (await admin.delete_topics([c["topic"]])).topic_error_codes)


async def topics(admin: AIOKafkaAdminClient, c: Command) -> list[str]:
    return await admin.list_topics()


async def partitions(admin: AIOKafkaAdminClient, c: Command) -> list[int]:
    [found] = await admin.describe_topics([c["topic"]])
    return [each["partition"] for each in found["partitions"]]


async def grow(admin: AIOKafkaAdminClient, c: Command) -> None:
    await admin.create_partitions({c["topic"]: NewPartitions(c["partitions"])})


async def alter(admin: AIOKafkaAdminClient, c: Command) -> None:
    change = ConfigResource(ConfigResourceType.TOPIC, c["topic"], configs=c["configs"])
    for response in await admin.alter_configs([change]):
        check(resource[0] for resource in response.resources)


async def configs(admin: AIOKafkaAdminClient, c: Command) -> dict[str, str]:
    asked = ConfigResource(ConfigResourceType.TOPIC, c["topic"])
    [response] = await admin.describe_configs([asked])
    [(code, _, _, _, entries)] = response.resources
    check([code])
    return {entry[0]: entry[1] for entry in entries}


async def groups(admin: AIOKafkaAdminClient, c: Command) -> list[str]:
    return [name for name, _ in await admin.list_consumer_groups()]


async def group(admin: AIOKafkaAdminClient, c: Command) -> dict[str, Any]:
    [response] = await admin.describe_consumer_groups([c["group"]])
    [found] = response.to_object()["groups"]
    check([found["error_code"]])
    return {"state": found["state"], "members": len(found["members"])}


async def offset(admin: AIOKafkaAdminClient, c: Command) -> int:
    return (await admin.list_consumer_group_offsets(c["group"]))[partition_of(c)].offset


COMMANDS: dict[str, Callable[..., Any]] = {
    "produce": Session.produce, "read": Session.read,
    "join": Session.join, "poll": Session.poll, "assignment": Session.assignment,
    "commit": Session.commit, "leave": Session.leave,
    "init": Session.init, "begin": Session.begin, "send": Session.send,
    "offsets": Session.offsets, "end": Session.end, "abort": Session.abort,
    "look_up": Session.look_up, "move": Session.move,
    "create": administration(create), "delete": administration(delete),
    "topics": administration(topics), "partitions": administration(partitions),
    "grow": administration(grow), "alter": administration(alter),
    "configs": administration(configs), "groups": administration(groups),
    "group": administration(group), "offset": administration(offset),
}
