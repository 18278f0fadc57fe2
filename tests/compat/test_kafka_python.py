"""kafka-python 3: produce, consume, look up, administer, and be refused, on both brokers."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import OffsetAndMetadata

from tests.compat.brokers import Broker
from tests.compat.polls import LONG_POLL_MS
from tests.compat.waiting import eventually

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
DAY_MS = 86_400_000


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


@pytest.fixture
def make_producer(broker: Broker) -> Iterator[Callable[..., KafkaProducer]]:
    made: list[KafkaProducer] = []

    def make(**config: object) -> KafkaProducer:
        made.append(KafkaProducer(bootstrap_servers=broker.bootstrap, **config))
        return made[-1]

    yield make
    for producer in made:
        producer.close(timeout=5)


@pytest.fixture
def make_consumer(broker: Broker) -> Iterator[Callable[..., KafkaConsumer]]:
    made: list[KafkaConsumer] = []

    def make(*topics: str, **config: object) -> KafkaConsumer:
        config = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 10_000, **config}
        made.append(KafkaConsumer(*topics, bootstrap_servers=broker.bootstrap, **config))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


@pytest.fixture
def make_topic(
    broker: Broker, admin: KafkaAdminClient, unique: Callable[[str], str]
) -> Callable[..., str]:
    def make(num_partitions: int = 1, **configs: str) -> str:
        name = unique("topic")
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        options = {"num_partitions": num_partitions, "configs": dotted}
        admin.create_topics({name: options})
        eventually(broker, lambda: is_ready(admin, name))
        return name

    return make


def is_ready(admin: KafkaAdminClient, topic: str) -> bool:
    """Whether the topic is known and each of its partitions has a leader."""
    [found] = admin.describe_topics([topic])
    partitions = found["partitions"]
    return found["error_code"] == 0 and all(each["leader_id"] >= 0 for each in partitions)


def take(consumer: KafkaConsumer, count: int) -> list:
    """The next `count` records; fails if they do not come in time."""
    taken = []
    for record in consumer:
        taken.append(record)
        if len(taken) == count:
            return taken
    raise AssertionError(f"{len(taken)} of {count} records came")


def offsets_of(admin: KafkaAdminClient, topic: str, spec: object) -> int:
    """The offset that a look-up in partition 0 finds."""
    partition = TopicPartition(topic, 0)
    return admin.list_partition_offsets({partition: spec})[partition].offset


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(codec, make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    values = [f"value {number}".encode() * 50 for number in range(100)]
    producer = make_producer(compression_type=codec, linger_ms=20)
    for value in values:
        producer.send(topic, value)
    producer.flush()
    records = take(make_consumer(topic), 100)
    assert [record.value for record in records] == values
    assert [record.offset for record in records] == list(range(100))


def test_keys_choose_partitions_as_java_does(make_producer, make_topic) -> None:
    topic = make_topic(num_partitions=7)
    producer = make_producer()
    # What murmur2 in Apache Kafka's own client gives for these keys, modulo 7.
    expected = {b"alpha": 1, b"gamma": 6, b"": 2, b"\xff\x00\x01": 5}
    sent = {key: producer.send(topic, b"value", key=key).get(10).partition for key in expected}
    assert sent == expected


def test_headers(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    headers = [("trace", b"1"), ("trace", b"2"), ("empty", b""), ("ünicode", "wért".encode())]
    make_producer().send(topic, b"value", headers=headers).get(10)
    [record] = take(make_consumer(topic), 1)
    assert list(record.headers) == headers


def test_tombstones_and_absent_keys(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer()
    sent = [(b"key", None), (None, b"value"), (b"", b"")]
    for key, value in sent:
        producer.send(topic, value, key=key)
    producer.flush()
    records = take(make_consumer(topic), 3)
    assert [(record.key, record.value) for record in records] == sent


def test_timestamps_and_offsets_for_times(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer(linger_ms=50)
    base = int(time.time() * 1000) - 1000
    for number in range(10):
        producer.send(topic, b"value", timestamp_ms=base + 100 * number)
    producer.flush()
    consumer = make_consumer()
    partition = TopicPartition(topic, 0)
    asked = {base - 1: 0, base: 0, base + 1: 1, base + 450: 5, base + 900: 9}
    found = {at: consumer.offsets_for_times({partition: at})[partition] for at in asked}
    assert {at: each.offset for at, each in found.items()} == asked
    assert found[base + 450].timestamp == base + 500
    assert consumer.offsets_for_times({partition: base + 901})[partition] is None


def test_log_append_time(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    sent = make_producer().send(topic, b"value", timestamp_ms=before - DAY_MS).get(10)
    [record] = take(make_consumer(topic), 1)
    assert record.timestamp_type == 1
    assert before - 1 <= record.timestamp <= int(time.time() * 1000) + 1
    assert sent.timestamp == record.timestamp


def test_timestamp_too_far_away_is_refused(make_producer, make_topic) -> None:
    topic = make_topic(message_timestamp_before_max_ms="1000")
    producer = make_producer()
    old = int(time.time() * 1000) - DAY_MS
    with pytest.raises(kafka_errors.InvalidTimestampError):
        producer.send(topic, b"value", timestamp_ms=old).get(10)


def test_large_messages(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(max_message_bytes="6000000")
    value = bytes(range(256)) * 20_000
    make_producer(max_request_size=6_000_000).send(topic, value).get(20)
    [record] = take(make_consumer(topic, max_partition_fetch_bytes=1_000), 1)
    assert record.value == value


def test_message_over_the_limit_is_refused(make_producer, make_topic, admin) -> None:
    topic = make_topic(max_message_bytes="1000")
    producer = make_producer(enable_idempotence=False)
    with pytest.raises(kafka_errors.MessageSizeTooLargeError):
        producer.send(topic, b"x" * 2000).get(10)
    producer.send(topic, b"x" * 500).get(10)
    assert offsets_of(admin, topic, OffsetSpec.LATEST) == 1


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(acks, make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer(acks=acks, enable_idempotence=False)
    offsets = [producer.send(topic, b"%d" % number).get(10).offset for number in range(5)]
    if acks != 0:
        assert offsets == [0, 1, 2, 3, 4]
    values = [record.value for record in take(make_consumer(topic), 5)]
    assert values == [b"0", b"1", b"2", b"3", b"4"]


def test_idempotent_producer(make_producer, make_consumer, make_topic) -> None:
    topic = make_topic(num_partitions=3)
    producer = make_producer(enable_idempotence=True, max_in_flight_requests_per_connection=5)
    for number in range(300):
        producer.send(topic, b"%d" % number, partition=number % 3)
    producer.flush()
    by_partition: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for record in take(make_consumer(topic), 300):
        by_partition[record.partition].append(int(record.value))
    assert by_partition == {each: list(range(each, 300, 3)) for each in range(3)}


def test_topics_are_created_when_first_used(make_producer, make_consumer, topic) -> None:
    make_producer().send(topic, b"value").get(20)
    assert take(make_consumer(topic), 1)[0].value == b"value"


def test_create_describe_and_delete_topics(broker, admin, make_topic) -> None:
    topic = make_topic(num_partitions=3, retention_ms="12345678")
    [described] = admin.describe_topics([topic])
    assert described["error_code"] == 0
    assert [each["partition_index"] for each in described["partitions"]] == [0, 1, 2]
    assert all(each["leader_id"] == 1 for each in described["partitions"])
    assert topic in admin.list_topics()
    admin.delete_topics([topic])
    eventually(broker, lambda: topic not in admin.list_topics())


def test_a_recreated_topic_is_empty_and_has_another_id(
    broker, admin, make_topic, make_producer
) -> None:
    topic = make_topic()
    make_producer().send(topic, b"value").get(10)
    [before] = admin.describe_topics([topic])
    admin.delete_topics([topic])
    admin.create_topics({topic: {"num_partitions": 1}})
    eventually(broker, lambda: is_another(admin.describe_topics([topic])[0], before))
    assert offsets_of(admin, topic, OffsetSpec.LATEST) == 0


def is_another(topic: dict, before: dict) -> bool:
    """Whether the name now stands for a topic that is not the one before."""
    return topic["error_code"] == 0 and topic["topic_id"] != before["topic_id"]


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("", {}, kafka_errors.InvalidTopicError),
        ("no spaces", {}, kafka_errors.InvalidTopicError),
        ("x" * 250, {}, kafka_errors.InvalidTopicError),
        ("zero", {"num_partitions": 0}, kafka_errors.InvalidPartitionsError),
        ("copies", {"replication_factor": 9}, kafka_errors.InvalidReplicationFactorError),
        ("key", {"configs": {"no.such.key": "1"}}, kafka_errors.InvalidConfigurationError),
        ("value", {"configs": {"retention.ms": "soon"}}, kafka_errors.InvalidConfigurationError),
    ],
)
def test_bad_topics_are_refused(name, options, error, admin) -> None:
    with pytest.raises(error):
        admin.create_topics({name: {"num_partitions": 1, **options}})


def test_topic_that_exists_is_refused(admin, make_topic) -> None:
    topic = make_topic()
    with pytest.raises(kafka_errors.TopicAlreadyExistsError):
        admin.create_topics({topic: {"num_partitions": 1}})


def test_unknown_topic_cannot_be_deleted(admin, topic) -> None:
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_create_topics_may_only_validate(admin, topic) -> None:
    admin.create_topics({topic: {"num_partitions": 1}}, validate_only=True)
    assert topic not in admin.list_topics()


def test_describe_and_alter_configs(broker, admin, make_topic) -> None:
    topic = make_topic(retention_ms="1000000")
    change = {"retention.ms": "2000000", "cleanup.policy": "compact,delete"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=change)])
    eventually(broker, lambda: topic_configs(admin, topic)["retention.ms"]["value"] == "2000000")
    configs = topic_configs(admin, topic)
    assert configs["cleanup.policy"]["value"] == "compact,delete"
    assert configs["max.message.bytes"]["value"] == "1048588"


def test_bad_config_value_changes_nothing(admin, make_topic) -> None:
    topic = make_topic(retention_ms="1000000")
    change = {"segment.bytes": "2000000", "retention.ms": "soon"}
    said = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=change)])
    assert "InvalidConfigurationError" in str(said)
    configs = topic_configs(admin, topic)
    assert configs["retention.ms"]["value"] == "1000000"
    assert configs["segment.bytes"]["value"] == "1073741824"


def topic_configs(admin: KafkaAdminClient, topic: str) -> dict:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    [by_name] = admin.describe_configs([resource], config_filter="all").values()
    return by_name[topic]


def test_every_topic_config_is_described(admin, make_topic) -> None:
    configs = topic_configs(admin, make_topic())
    assert len(configs) >= 30
    assert {"cleanup.policy", "min.insync.replicas", "compression.type"} <= set(configs)


def test_delete_records(admin, make_producer, make_consumer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer()
    for number in range(10):
        producer.send(topic, b"%d" % number)
    producer.flush()
    admin.delete_records({TopicPartition(topic, 0): 4})
    assert offsets_of(admin, topic, OffsetSpec.EARLIEST) == 4
    assert [record.offset for record in take(make_consumer(topic), 6)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(kafka_errors.OffsetOutOfRangeError):
        admin.delete_records({TopicPartition(topic, 0): 11})


def test_create_partitions(broker, admin, make_topic) -> None:
    topic = make_topic(num_partitions=2)
    admin.create_partitions({topic: 4})
    eventually(broker, lambda: len(admin.describe_topics([topic])[0]["partitions"]) == 4)
    with pytest.raises(kafka_errors.InvalidPartitionsError):
        admin.create_partitions({topic: 3})


def test_describe_cluster_and_log_dirs(broker, admin, make_topic) -> None:
    topic = make_topic()
    cluster = admin.describe_cluster()
    assert [each["broker_id"] for each in cluster["brokers"]] == [1]
    assert cluster["cluster_id"]
    eventually(broker, lambda: topic in str(admin.describe_log_dirs({topic: [0]})))


def test_offset_look_ups(admin, make_producer, make_topic) -> None:
    topic = make_topic()
    producer = make_producer()
    now = int(time.time() * 1000)
    for number, timestamp in enumerate((now, now + 500, now - 500)):
        assert producer.send(topic, b"x", timestamp_ms=timestamp).get(10).offset == number
    look_up = partial(offsets_of, admin, topic)
    assert look_up(OffsetSpec.EARLIEST) == 0
    assert look_up(OffsetSpec.LATEST) == 3
    assert look_up(OffsetSpec.MAX_TIMESTAMP) == 1


def test_group_resumes_from_committed_offsets(
    admin, make_producer, make_consumer, make_topic, unique
) -> None:
    topic, group = make_topic(), unique("group")
    producer = make_producer()
    for number in range(10):
        producer.send(topic, b"%d" % number)
    producer.flush()
    first = make_consumer(topic, group_id=group, enable_auto_commit=False)
    assert [record.offset for record in take(first, 4)] == [0, 1, 2, 3]
    partition = TopicPartition(topic, 0)
    first.commit({partition: OffsetAndMetadata(4, "half way", -1)})
    first.close()
    assert admin.list_group_offsets({group: None})[group][partition].metadata == "half way"
    second = make_consumer(topic, group_id=group, enable_auto_commit=False)
    assert [record.offset for record in take(second, 6)] == [4, 5, 6, 7, 8, 9]


def test_group_shares_partitions(admin, make_consumer, make_topic, unique) -> None:
    topic, group = make_topic(num_partitions=4), unique("group")
    members = [make_consumer(topic, group_id=group, heartbeat_interval_ms=200) for _ in range(2)]
    for member in members:
        member.partitions_for_topic(topic)  # a leader without metadata assigns nothing, for ever
    with ThreadPoolExecutor(2) as polling:
        until = partial(poll_until_shared, members)
        list(polling.map(until, members))
    shares = [{each.partition for each in member.assignment()} for member in members]
    assert sorted(map(len, shares)) == [2, 2]
    assert shares[0] | shares[1] == {0, 1, 2, 3}
    assert len(admin.describe_groups([group])[group]["members"]) == 2


def poll_until_shared(members: list[KafkaConsumer], member: KafkaConsumer) -> None:
    """Polls until each has two partitions, twice in a row."""
    deadline, lasted = time.monotonic() + 40, 0
    while time.monotonic() < deadline and lasted < 2:
        member.poll(timeout_ms=LONG_POLL_MS)
        is_shared = [len(each.assignment()) for each in members] == [2, 2]
        lasted = lasted + 1 if is_shared else 0


def test_transactions(make_producer, make_consumer, make_topic, unique) -> None:
    topic = make_topic()
    producer = make_producer(transactional_id=unique("transaction"))
    producer.init_transactions()
    ends = {b"aborted": producer.abort_transaction, b"kept": producer.commit_transaction}
    for value, end in ends.items():
        producer.begin_transaction()
        producer.send(topic, value).get(10)
        end()
    committed = make_consumer(topic, isolation_level="read_committed")
    assert [record.value for record in take(committed, 1)] == [b"kept"]
    everything = make_consumer(topic, isolation_level="read_uncommitted")
    assert [record.value for record in take(everything, 2)] == [b"aborted", b"kept"]
