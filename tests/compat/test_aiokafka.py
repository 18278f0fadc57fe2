"""aiokafka: produce, consume, look up, administer, on both brokers."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.structs import OffsetAndMetadata

from tests.compat.brokers import Broker
from tests.compat.waiting import PATIENCE_S

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
DAY_MS = 86_400_000
TEST_TIMEOUT_S = 60


class Clients:
    """Makes started clients of one broker, as contexts."""

    def __init__(self, broker: Broker, unique: Callable[[str], str]) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap
        self.unique = unique

    @asynccontextmanager
    async def producer(self, **config: object) -> AsyncIterator[AIOKafkaProducer]:
        async with AIOKafkaProducer(bootstrap_servers=self.bootstrap, **config) as producer:
            yield producer

    @asynccontextmanager
    async def consumer(self, *topics: str, **config: object) -> AsyncIterator[AIOKafkaConsumer]:
        config = {"bootstrap_servers": self.bootstrap, "auto_offset_reset": "earliest", **config}
        async with AIOKafkaConsumer(*topics, **config) as consumer:
            yield consumer

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    async def topic(self, num_partitions: int = 1, **configs: str) -> str:
        """A new topic with this many partitions."""
        name = self.unique("topic")
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        async with self.admin() as admin:
            await create(admin, NewTopic(name, num_partitions, 1, topic_configs=dotted))
            await self.eventually(lambda: is_ready(admin, name))
        return name

    async def eventually(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """As in waiting.py: kafkalite is believed at once, Apache Kafka within some seconds."""
        deadline = time.monotonic() + (0 if self.broker.is_kafkalite else PATIENCE_S)
        while not await condition():
            assert time.monotonic() < deadline, "it did not come to be"
            await asyncio.sleep(0.05)


@pytest.fixture
def clients(broker: Broker, unique: Callable[[str], str]) -> Clients:
    return Clients(broker, unique)


def run(scenario: Awaitable[None]) -> None:
    """Runs the scenario on an event loop of its own."""

    async def in_time() -> None:
        await asyncio.wait_for(scenario, TEST_TIMEOUT_S)

    asyncio.run(in_time())


async def create(admin: AIOKafkaAdminClient, topic: NewTopic, **options: bool) -> None:
    """Creates a topic, or raises the broker's reason."""
    response = await admin.create_topics([topic], **options)
    for _, code, message in response.topic_errors:
        if code:
            raise kafka_errors.for_code(code)(message)


async def is_ready(admin: AIOKafkaAdminClient, topic: str, partitions: int = 1) -> bool:
    """Whether the topic has this many partitions or more, each with a leader."""
    [found] = await admin.describe_topics([topic])
    leaders = [each["leader"] for each in found["partitions"]]
    return found["error_code"] == 0 and len(leaders) >= partitions and min(leaders) >= 0


async def take(consumer: AIOKafkaConsumer, count: int) -> list:
    """The next `count` records; fails if they do not come in time."""
    return [await asyncio.wait_for(consumer.getone(), 15) for _ in range(count)]


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(codec, clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        values = [f"value {number}".encode() * 50 for number in range(100)]
        async with clients.producer(compression_type=codec, linger_ms=20) as producer:
            await asyncio.gather(*[await producer.send(topic, value) for value in values])
        async with clients.consumer(topic) as consumer:
            records = await take(consumer, 100)
        assert [record.value for record in records] == values
        assert [record.offset for record in records] == list(range(100))

    run(scenario())


def test_keys_choose_partitions_as_java_does(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(num_partitions=7)
        expected = {b"alpha": 1, b"gamma": 6, b"": 2, b"\xff\x00\x01": 5}
        async with clients.producer() as producer:
            for key, partition in expected.items():
                sent = await producer.send_and_wait(topic, b"value", key=key)
                assert sent.partition == partition

    run(scenario())


def test_headers(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        headers = [("trace", b"1"), ("trace", b"2"), ("empty", b"")]
        async with clients.producer() as producer, clients.consumer(topic) as consumer:
            await producer.send_and_wait(topic, b"value", headers=headers)
            [record] = await take(consumer, 1)
            assert list(record.headers) == headers

    run(scenario())


def test_tombstones_and_absent_keys(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        sent = [(b"key", None), (None, b"value"), (b"", b"")]
        async with clients.producer() as producer, clients.consumer(topic) as consumer:
            for key, value in sent:
                await producer.send_and_wait(topic, value, key=key)
            records = await take(consumer, 3)
            assert [(record.key, record.value) for record in records] == sent

    run(scenario())


def test_timestamps_and_offsets_for_times(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        base = int(time.time() * 1000) - 1000
        async with clients.producer(linger_ms=50) as producer:
            sending = [
                await producer.send(topic, b"value", timestamp_ms=base + 100 * number)
                for number in range(10)
            ]
            await asyncio.gather(*sending)
        partition = TopicPartition(topic, 0)
        async with clients.consumer(topic) as consumer:
            for at, offset in {base - 1: 0, base: 0, base + 1: 1, base + 450: 5}.items():
                found = await consumer.offsets_for_times({partition: at})
                assert found[partition].offset == offset
            late = await consumer.offsets_for_times({partition: base + 901})
            assert late[partition] is None
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}

    run(scenario())


def test_log_append_time(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(message_timestamp_type="LogAppendTime")
        before = int(time.time() * 1000)
        async with clients.producer() as producer, clients.consumer(topic) as consumer:
            await producer.send_and_wait(topic, b"value", timestamp_ms=before - DAY_MS)
            [record] = await take(consumer, 1)
            assert record.timestamp_type == 1
            assert before - 1 <= record.timestamp <= int(time.time() * 1000) + 1

    run(scenario())


def test_large_messages(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(max_message_bytes="6000000")
        value = bytes(range(256)) * 20_000
        async with clients.producer(max_request_size=6_000_000) as producer:
            await producer.send_and_wait(topic, value)
        async with clients.consumer(topic, max_partition_fetch_bytes=1_000) as consumer:
            [record] = await take(consumer, 1)
            assert record.value == value

    run(scenario())


def test_message_over_the_limit_is_refused(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(max_message_bytes="1000")
        async with clients.producer() as producer:
            with pytest.raises(kafka_errors.MessageSizeTooLargeError):
                await producer.send_and_wait(topic, b"x" * 2000)
            sent = await producer.send_and_wait(topic, b"x" * 500)
            assert sent.offset == 0

    run(scenario())


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(acks, clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        async with clients.producer(acks=acks) as producer, clients.consumer(topic) as consumer:
            for number in range(5):
                await producer.send_and_wait(topic, b"%d" % number)
            values = [record.value for record in await take(consumer, 5)]
            assert values == [b"0", b"1", b"2", b"3", b"4"]

    run(scenario())


def test_idempotent_producer(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(num_partitions=3)
        async with clients.producer(enable_idempotence=True) as producer:
            numbers = range(300)
            sending = [
                await producer.send(topic, b"%d" % each, partition=each % 3) for each in numbers
            ]
            await asyncio.gather(*sending)
        by_partition: dict[int, list[int]] = {0: [], 1: [], 2: []}
        async with clients.consumer(topic) as consumer:
            for record in await take(consumer, 300):
                by_partition[record.partition].append(int(record.value))
        assert by_partition == {each: list(range(each, 300, 3)) for each in range(3)}

    run(scenario())


def test_create_describe_and_delete_topics(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(num_partitions=3)
        async with clients.admin() as admin:
            [described] = await admin.describe_topics([topic])
            assert described["error_code"] == 0
            assert sorted(each["partition"] for each in described["partitions"]) == [0, 1, 2]
            assert {each["leader"] for each in described["partitions"]} == {1}
            with pytest.raises(kafka_errors.TopicAlreadyExistsError):
                await create(admin, NewTopic(topic, 1, 1))
            await admin.delete_topics([topic])


            async def is_gone() -> bool:
                return topic not in await admin.list_topics()

            await clients.eventually(is_gone)

    run(scenario())


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("no spaces", 1, 1), kafka_errors.InvalidTopicError),
        (NewTopic("zero", 0, 1), kafka_errors.InvalidPartitionsError),
        (NewTopic("copies", 1, 9), kafka_errors.InvalidReplicationFactorError),
        (
            NewTopic("key", 1, 1, topic_configs={"no.such.key": "1"}),
            kafka_errors.InvalidConfigurationError,
        ),
    ],
    ids=["name", "partitions", "copies", "config"],
)
def test_bad_topics_are_refused(topic, error, clients) -> None:
    async def scenario() -> None:
        async with clients.admin() as admin:
            with pytest.raises(error):
                await create(admin, topic)

    run(scenario())


def test_describe_and_alter_configs(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(retention_ms="1000000")
        change = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "2000"})
        async with clients.admin() as admin:
            await admin.alter_configs([change])
            asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]

            async def is_altered() -> bool:
                [response] = await admin.describe_configs(asked)
                [(_, _, _, _, entries)] = response.resources
                values = {entry[0]: entry[1] for entry in entries}
                assert values["max.message.bytes"] == "1048588"
                return values["retention.ms"] == "2000"

            await clients.eventually(is_altered)

    run(scenario())


def test_delete_records(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        partition = TopicPartition(topic, 0)
        async with clients.producer() as producer, clients.admin() as admin:
            for number in range(10):
                await producer.send_and_wait(topic, b"%d" % number)
            low = await admin.delete_records({partition: RecordsToDelete(before_offset=4)})
            assert low == {partition: 4}
        async with clients.consumer(topic) as consumer:
            assert [record.offset for record in await take(consumer, 6)] == [4, 5, 6, 7, 8, 9]

    run(scenario())


def test_create_partitions(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic(num_partitions=2)
        async with clients.admin() as admin:
            await admin.create_partitions({topic: NewPartitions(4)})
            await clients.eventually(lambda: is_ready(admin, topic, 4))

    run(scenario())


def test_long_poll_wakes_at_once(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        patient = {"fetch_max_wait_ms": 10_000}
        async with clients.producer() as producer, clients.consumer(topic, **patient) as consumer:
            await producer.send_and_wait(topic, b"first")
            await take(consumer, 1)
            waiting = asyncio.ensure_future(consumer.getone())
            await asyncio.sleep(0.5)
            sent = time.monotonic()
            await producer.send_and_wait(topic, b"second")
            assert (await waiting).value == b"second"
            assert time.monotonic() - sent < 2

    run(scenario())


def test_group_resumes_from_committed_offsets(clients) -> None:
    async def scenario() -> None:
        topic, group = await clients.topic(), clients.unique("group")
        config = {"group_id": group, "enable_auto_commit": False}
        partition = TopicPartition(topic, 0)
        async with clients.producer() as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"%d" % number)
        async with clients.consumer(topic, **config) as first:
            assert [record.offset for record in await take(first, 4)] == [0, 1, 2, 3]
            await first.commit({partition: OffsetAndMetadata(4, "half way")})
        async with clients.admin() as admin:
            kept = await admin.list_consumer_group_offsets(group)
            assert kept[partition] == OffsetAndMetadata(4, "half way")
        async with clients.consumer(topic, **config) as second:
            assert [record.offset for record in await take(second, 6)] == [4, 5, 6, 7, 8, 9]

    run(scenario())


def test_group_shares_partitions(clients) -> None:
    async def scenario() -> None:
        topic, group = await clients.topic(num_partitions=4), clients.unique("group")
        config = {"group_id": group, "heartbeat_interval_ms": 200}
        async with (
            clients.consumer(topic, **config) as first,
            clients.consumer(topic, **config) as second,
        ):
            while [len(first.assignment()), len(second.assignment())] != [2, 2]:
                await asyncio.sleep(0.1)
            shares = {each.partition for each in first.assignment() | second.assignment()}
            assert shares == {0, 1, 2, 3}

    run(scenario())


def test_transactions(clients) -> None:
    async def scenario() -> None:
        topic = await clients.topic()
        async with clients.producer(transactional_id=clients.unique("transaction")) as producer:
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()
            async with producer.transaction():
                await producer.send_and_wait(topic, b"kept")
        for isolation, expected in (
            ("read_committed", [b"kept"]),
            ("read_uncommitted", [b"aborted", b"kept"]),
        ):
            async with clients.consumer(topic, isolation_level=isolation) as consumer:
                records = await take(consumer, len(expected))
                assert [record.value for record in records] == expected

    run(scenario())
