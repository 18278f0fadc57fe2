"""confluent-kafka (librdkafka): produce, consume, look up, administer, on both brokers."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_END,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.compat.brokers import Broker
from tests.compat.waiting import eventually

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_S = 20
DAY_MS = 86_400_000


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def make_producer(broker: Broker) -> Iterator[Callable[..., Producer]]:
    made: list[Producer] = []

    def make(**config: object) -> Producer:
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        made.append(Producer({"bootstrap.servers": broker.bootstrap, **dotted}))
        return made[-1]

    yield make
    for producer in made:
        with suppress(KafkaException):  # a fenced producer refuses even this
            producer.flush(WAIT_S)


@pytest.fixture
def make_consumer(
    broker: Broker, unique: Callable[[str], str]
) -> Iterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def make(**config: object) -> Consumer:
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        defaults = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": unique("group"),
            "auto.offset.reset": "earliest",
        }
        made.append(Consumer({**defaults, **dotted}))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


@pytest.fixture
def make_topic(
    broker: Broker, admin: AdminClient, unique: Callable[[str], str]
) -> Callable[..., str]:
    def make(num_partitions: int = 1, **configs: str) -> str:
        name = unique("topic")
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        one(admin.create_topics([NewTopic(name, num_partitions, config=dotted)]))
        eventually(broker, lambda: is_ready(admin, name))
        return name

    return make


def is_ready(admin: AdminClient, topic: str) -> bool:
    """Whether the topic is known and each of its partitions has a leader."""
    found = admin.list_topics(timeout=WAIT_S).topics.get(topic)
    return found is not None and all(each.leader >= 0 for each in found.partitions.values())


def one(futures: dict) -> Any:
    """The result of the one thing that was asked of the admin client."""
    [future] = futures.values()
    return future.result(WAIT_S)


def send(producer: Producer, topic: str, value: bytes | None, **fields: object) -> Message:
    """Produces one record and waits until it is delivered or refused."""
    delivered: list[tuple[KafkaError | None, Message]] = []
    producer.produce(topic, value, on_delivery=lambda *said: delivered.append(said), **fields)
    producer.flush(WAIT_S)
    [(error, message)] = delivered
    if error is not None:
        raise KafkaException(error)
    return message


def take(consumer: Consumer, count: int) -> list[Message]:
    """The next `count` records; fails if they do not come in time."""
    taken: list[Message] = []
    deadline = time.monotonic() + WAIT_S
    while len(taken) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(taken), 0.2):
            assert message.error() is None, message.error()
            taken.append(message)
    assert len(taken) == count, f"{len(taken)} of {count} records came"
    return taken


def read(consumer: Consumer, topic: str, count: int, partition: int = 0) -> list[Message]:
    """The first `count` records of a partition, read without a group."""
    consumer.assign([TopicPartition(topic, partition, 0)])
    return take(consumer, count)


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(codec, make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    values = [f"value {number}".encode() * 50 for number in range(100)]
    producer = make_producer(compression_type=codec, linger_ms=20)
    for value in values:
        producer.produce(topic, value)
    producer.flush(WAIT_S)
    records = read(make_consumer(), topic, 100)
    assert [record.value() for record in records] == values
    assert [record.offset() for record in records] == list(range(100))


def test_keys_choose_partitions_as_java_does(make_producer, make_topic) -> None:
    topic = make_topic(num_partitions=7)
    producer = make_producer(partitioner="murmur2_random")
    # What murmur2 in Apache Kafka's own client gives for these keys, modulo 7.
    expected = {b"alpha": 1, b"gamma": 6, b"\xff\x00\x01": 5}
    sent = {key: send(producer, topic, b"value", key=key).partition() for key in expected}
    assert sent == expected


def test_headers(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    headers = [("trace", b"1"), ("trace", b"2"), ("empty", b""), ("null", None)]
    send(make_producer(), topic, b"value", headers=headers)
    [record] = read(make_consumer(), topic, 1)
    assert record.headers() == headers


def test_tombstones_and_absent_keys(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer()
    sent = [(b"key", None), (None, b"value"), (b"", b""), (None, None)]
    for key, value in sent:
        send(producer, topic, value, key=key)
    records = read(make_consumer(), topic, 4)
    assert [(record.key(), record.value()) for record in records] == sent


def test_timestamps_and_offsets_for_times(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer(linger_ms=50)
    base = int(time.time() * 1000) - 1000
    for number in range(10):
        producer.produce(topic, b"value", timestamp=base + 100 * number)
    producer.flush(WAIT_S)
    consumer = make_consumer()
    asked = {base - 1: 0, base: 0, base + 1: 1, base + 450: 5, base + 901: OFFSET_END}
    for timestamp, offset in asked.items():
        [found] = consumer.offsets_for_times([TopicPartition(topic, 0, timestamp)], WAIT_S)
        assert found.offset == offset
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S) == (0, 10)


def test_log_append_time(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    send(make_producer(), topic, b"value", timestamp=before - DAY_MS)
    [record] = read(make_consumer(), topic, 1)
    kind, timestamp = record.timestamp()
    assert kind == 2
    assert before - 1 <= timestamp <= int(time.time() * 1000) + 1


def test_timestamp_too_far_away_is_refused(make_producer, make_topic) -> None:
    topic = make_topic(message_timestamp_before_max_ms="1000")
    old = int(time.time() * 1000) - DAY_MS
    with pytest.raises(KafkaException, match="INVALID_TIMESTAMP"):
        send(make_producer(), topic, b"value", timestamp=old)


def test_large_messages(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(max_message_bytes="6000000")
    value = bytes(range(256)) * 20_000
    send(make_producer(message_max_bytes=6_000_000), topic, value)
    [record] = read(make_consumer(max_partition_fetch_bytes=1_000), topic, 1)
    assert record.value() == value


def test_message_over_the_limit_is_refused(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(max_message_bytes="1000")
    producer = make_producer()
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        send(producer, topic, b"x" * 2000)
    send(producer, topic, b"x" * 500)
    assert make_consumer().get_watermark_offsets(TopicPartition(topic, 0), WAIT_S) == (0, 1)


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(acks, make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer(acks=acks)
    for number in range(5):
        send(producer, topic, b"%d" % number)
    values = [record.value() for record in read(make_consumer(), topic, 5)]
    assert values == [b"0", b"1", b"2", b"3", b"4"]


def test_idempotent_producer(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(num_partitions=3)
    producer = make_producer(enable_idempotence=True, batch_num_messages=7, linger_ms=1)
    for number in range(300):
        producer.produce(topic, b"%d" % number, partition=number % 3)
    producer.flush(WAIT_S)
    for partition in range(3):
        records = read(make_consumer(), topic, 100, partition)
        assert [int(record.value()) for record in records] == list(range(partition, 300, 3))


def test_topics_are_created_when_first_used(make_producer, make_consumer, topic) -> None:
    send(make_producer(), topic, b"value")
    assert read(make_consumer(), topic, 1)[0].value() == b"value"


def test_create_describe_and_delete_topics(broker, admin, make_topic) -> None:
    topic = make_topic(num_partitions=3, retention_ms="12345678")
    described = admin.list_topics(topic, WAIT_S).topics[topic]
    assert described.error is None
    assert sorted(described.partitions) == [0, 1, 2]
    assert {each.leader for each in described.partitions.values()} == {1}
    one(admin.delete_topics([topic]))
    eventually(broker, lambda: topic not in admin.list_topics(timeout=WAIT_S).topics)


def test_topic_that_exists_is_refused(admin, make_topic) -> None:
    topic = make_topic()
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        one(admin.create_topics([NewTopic(topic, 1)]))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"topic": "no spaces"}, "TOPIC_EXCEPTION"),
        ({"replication_factor": 9}, "INVALID_REPLICATION_FACTOR"),
        ({"config": {"no.such.key": "1"}}, "INVALID_CONFIG"),
        ({"config": {"retention.ms": "soon"}}, "INVALID_CONFIG"),
    ],
)
def test_bad_topics_are_refused(options, error, admin, topic) -> None:
    with pytest.raises(KafkaException, match=error):
        one(admin.create_topics([NewTopic(**{"topic": topic, "num_partitions": 1, **options})]))


def test_describe_and_alter_configs(broker, admin, make_topic) -> None:
    topic = make_topic(retention_ms="1000000")
    change = ConfigEntry("retention.ms", "2000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    one(admin.incremental_alter_configs([resource]))

    def described() -> Any:
        return one(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))

    eventually(broker, lambda: described()["retention.ms"].value == "2000000")
    configs = described()
    assert not configs["retention.ms"].is_default
    assert configs["max.message.bytes"].value == "1048588"
    assert configs["max.message.bytes"].is_default


def test_broker_configs_are_described(admin) -> None:
    configs = one(admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")]))
    assert configs["node.id"].value == "1"
    assert configs["group.initial.rebalance.delay.ms"].value == "0"
    assert configs["node.id"].is_read_only


def test_delete_records(admin, make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer()
    for number in range(10):
        send(producer, topic, b"%d" % number)
    deleted = one(admin.delete_records([TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4
    consumer = make_consumer()
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S) == (4, 10)
    assert [record.offset() for record in read(consumer, topic, 6)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
        one(admin.delete_records([TopicPartition(topic, 0, 11)]))


def test_create_partitions(broker, admin, make_topic) -> None:
    topic = make_topic(num_partitions=2)
    one(admin.create_partitions([NewPartitions(topic, 4)]))
    eventually(broker, lambda: len(admin.list_topics(topic, WAIT_S).topics[topic].partitions) == 4)
    with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
        one(admin.create_partitions([NewPartitions(topic, 3)]))


def test_describe_cluster(admin, broker) -> None:
    cluster = admin.describe_cluster().result(WAIT_S)
    assert [(node.id, node.host, node.port) for node in cluster.nodes] == [
        (1, broker.host, broker.port)
    ]
    assert cluster.cluster_id


def test_offset_look_ups(admin, make_producer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer()
    now = int(time.time() * 1000)
    for timestamp in (now, now + 500, now - 500):
        send(producer, topic, b"x", timestamp=timestamp)

    def look_up(spec: OffsetSpec) -> int:
        return one(admin.list_offsets({TopicPartition(topic, 0): spec})).offset

    assert look_up(OffsetSpec.earliest()) == 0
    assert look_up(OffsetSpec.latest()) == 3
    assert look_up(OffsetSpec.max_timestamp()) == 1
    assert look_up(OffsetSpec.for_timestamp(now + 1)) == 1


def test_incremental_fetch_keeps_up(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(num_partitions=5)
    producer, consumer = make_producer(), make_consumer()
    consumer.assign([TopicPartition(topic, each, 0) for each in range(5)])
    for number in range(20):
        send(producer, topic, b"%d" % number, partition=number % 5)
        assert take(consumer, 1)[0].value() == b"%d" % number


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_resumes_from_committed_offsets(
    protocol, admin, make_producer, make_consumer, make_topic, unique
) -> None:
    topic, group = make_topic(), unique("group")
    producer = make_producer()
    for number in range(10):
        send(producer, topic, b"%d" % number)
    config = {"group_id": group, "group_protocol": protocol, "enable_auto_commit": False}
    first = make_consumer(**config)
    first.subscribe([topic])
    assert [record.offset() for record in take(first, 4)] == [0, 1, 2, 3]
    first.commit(offsets=[TopicPartition(topic, 0, 4, "half way")], asynchronous=False)
    first.close()
    asked = [ConsumerGroupTopicPartitions(group)]
    [committed] = one(admin.list_consumer_group_offsets(asked)).topic_partitions
    assert (committed.offset, committed.metadata) == (4, "half way")
    second = make_consumer(**config)
    second.subscribe([topic])
    assert [record.offset() for record in take(second, 6)] == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_shares_partitions(protocol, make_consumer, make_topic, unique) -> None:
    topic, group = make_topic(num_partitions=4), unique("group")
    members = [make_consumer(group_id=group, group_protocol=protocol) for _ in range(2)]
    for member in members:
        member.subscribe([topic])
    deadline = time.monotonic() + 40
    shares: list[set[int]] = []
    while sorted(map(len, shares)) != [2, 2] and time.monotonic() < deadline:
        for member in members:
            member.poll(0.1)
        shares = [{each.partition for each in member.assignment()} for member in members]
    assert sorted(map(len, shares)) == [2, 2]
    assert shares[0] | shares[1] == {0, 1, 2, 3}


def test_cooperative_members_keep_what_they_have(make_consumer, make_topic, unique) -> None:
    topic, group = make_topic(num_partitions=4), unique("group")
    config = {"group_id": group, "partition_assignment_strategy": "cooperative-sticky"}
    first, second = make_consumer(**config), make_consumer(**config)
    revoked: list[int] = []
    first.subscribe([topic], on_revoke=lambda _, gone: revoked.extend(t.partition for t in gone))
    poll_until([first], lambda: len(first.assignment()) == 4)
    second.subscribe([topic])
    poll_until([first, second], lambda: len(first.assignment()) == len(second.assignment()) == 2)
    assert len(revoked) == 2


def poll_until(members: list[Consumer], reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 40
    while not reached():
        assert time.monotonic() < deadline
        for member in members:
            member.poll(0.1)


def test_transactions(make_producer, make_consumer, make_topic, unique) -> None:
    topic = make_topic()
    producer = make_producer(transactional_id=unique("transaction"))
    producer.init_transactions(WAIT_S)
    ends = {b"aborted": producer.abort_transaction, b"kept": producer.commit_transaction}
    for value, end in ends.items():
        producer.begin_transaction()
        send(producer, topic, value)
        end(WAIT_S)
    committed = make_consumer(isolation_level="read_committed")
    assert [record.value() for record in read(committed, topic, 1)] == [b"kept"]
    everything = make_consumer(isolation_level="read_uncommitted")
    assert [record.value() for record in read(everything, topic, 2)] == [b"aborted", b"kept"]


def test_transaction_commits_consumed_offsets(
    make_producer, make_consumer, make_topic, unique
) -> None:
    source, target, group = make_topic(), make_topic(), unique("group")
    send(make_producer(), source, b"value")
    consumer = make_consumer(group_id=group, enable_auto_commit=False)
    consumer.subscribe([source])
    [record] = take(consumer, 1)
    producer = make_producer(transactional_id=unique("transaction"))
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    send(producer, target, record.value())
    position = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), WAIT_S)
    producer.commit_transaction(WAIT_S)
    [committed] = consumer.committed([TopicPartition(source, 0)], WAIT_S)
    assert committed.offset == 1


def test_zombie_is_fenced(make_producer, make_topic, unique) -> None:
    topic, transaction = make_topic(), unique("transaction")
    zombie = make_producer(transactional_id=transaction)
    zombie.init_transactions(WAIT_S)
    zombie.begin_transaction()
    send(zombie, topic, b"lost")
    make_producer(transactional_id=transaction).init_transactions(WAIT_S)
    with pytest.raises(KafkaException) as refused:
        zombie.commit_transaction(WAIT_S)
    assert refused.value.args[0].code() == KafkaError._FENCED
