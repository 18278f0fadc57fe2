"""One broker of three is stopped and comes back; clients go on."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaConsumer

from kafkalite.broker import Broker
from kafkalite.client.wire import Wire, decode_response, request_frame
from kafkalite.coordinators.cluster import absence
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
)
from kafkalite.testing import running
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

PARTITIONS = 6


def leaders(kafka: EmbeddedKafka, topic: str) -> list[int]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return [partitions[index].leader for index in sorted(partitions)]


def produce(producer: Producer, topic: str, partitions: list[int], value: str) -> None:
    failed: list[object] = []

    def told(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    for partition in partitions:
        producer.produce(topic, value, partition=partition, on_delivery=told)
    assert producer.flush(20) == 0
    assert failed == []


def values(kafka: EmbeddedKafka, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )  # fmt: skip
    try:
        return sorted(record.value for _, record in zip(range(count), consumer, strict=False))
    finally:
        consumer.close()


def test_one_of_three_is_stopped_and_comes_back_while_clients_go_on(tmp_path) -> None:
    with EmbeddedKafka(tmp_path, brokers=3) as kafka:
        kafka.create_topic("spread", PARTITIONS)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        led = leaders(kafka, "spread")
        all_of_it, of_others = (
            list(range(PARTITIONS)),
            [i for i in range(PARTITIONS) if led[i] != 2],
        )
        produce(producer, "spread", all_of_it, "before")
        ports = kafka.ports

        kafka.stop_broker(2)
        kafka.stop_broker(2)  # once is as good as twice
        assert leaders(kafka, "spread") == [-1 if each == 2 else each for each in led]
        produce(producer, "spread", of_others, "meanwhile")
        kafka.create_topic("made-meanwhile", 4)

        kafka.start_broker(2)
        kafka.start_broker(2)
        assert kafka.ports == ports
        assert leaders(kafka, "spread") == led
        produce(producer, "spread", all_of_it, "after")
        found = values(kafka, "spread", 2 * PARTITIONS + len(of_others))
        assert found.count(b"before") == found.count(b"after") == PARTITIONS
        assert found.count(b"meanwhile") == len(of_others)


def test_what_waits_for_a_stopped_broker_gets_through_when_it_is_back() -> None:
    with EmbeddedKafka(brokers=3) as kafka:
        kafka.create_topic("spread", PARTITIONS)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        kafka.stop_broker(3)
        for partition in range(PARTITIONS):
            producer.produce("spread", b"kept", partition=partition)
        producer.flush(0.5)
        kafka.start_broker(3)
        assert producer.flush(20) == 0
        assert values(kafka, "spread", PARTITIONS) == [b"kept"] * PARTITIONS


def test_brokers_come_and_go_many_times_and_the_cluster_stops_with_some_away() -> None:
    kafka = EmbeddedKafka(brokers=3, topics={"spread": 3}).start()
    for number in range(10):
        kafka.stop_broker(2 + number % 2)
        kafka.start_broker(2 + number % 2)
    kafka.stop_broker(2)
    kafka.restart()
    assert -1 not in leaders(kafka, "spread")
    kafka.stop()


# --- the controller -------------------------------------------------------------------------------


def test_the_controller_is_stopped_and_comes_back_while_clients_go_on(tmp_path) -> None:
    with EmbeddedKafka(tmp_path, brokers=3) as kafka:
        kafka.create_topic("spread", PARTITIONS)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        led = leaders(kafka, "spread")
        of_others = [index for index in range(PARTITIONS) if led[index] != 1]
        produce(producer, "spread", list(range(PARTITIONS)), "before")

        kafka.stop_broker(1)
        kafka.stop_broker(1)
        assert kafka.stopped_brokers == [1]
        assert leaders(kafka, "spread") == [-1 if each == 1 else each for each in led]
        produce(producer, "spread", of_others, "meanwhile")
        with pytest.raises(BrokerFailed, match="broker 1, the controller, does not serve"):
            kafka.create_topic("too-soon")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        waiting = admin.create_topics([NewTopic("waited-for", 3)])["waited-for"]
        with pytest.raises(FutureTimeout):
            waiting.result(0.5)

        kafka.start_broker(1)
        assert waiting.result(20) is None
        assert sorted(leaders(kafka, "waited-for")) == [1, 2, 3]
        assert leaders(kafka, "spread") == led
        kafka.create_topic("made-afterwards", 3)
        produce(producer, "spread", list(range(PARTITIONS)), "after")
        found = values(kafka, "spread", 2 * PARTITIONS + len(of_others))
        assert found.count(b"before") == found.count(b"after") == PARTITIONS
        assert found.count(b"meanwhile") == len(of_others)
        kafka.restart()
        assert {"spread", "waited-for", "made-afterwards"} <= set(
            admin.list_topics(timeout=10).topics
        )


def test_transactions_and_groups_get_over_the_absence_of_the_controller() -> None:
    """Whichever broker coordinates them."""
    with EmbeddedKafka(brokers=3, topics={"spread": PARTITIONS}) as kafka:
        servers = {"bootstrap.servers": kafka.bootstrap_servers}
        producers = [Producer({**servers, "transactional.id": f"t-{n}"}) for n in range(6)]
        for producer in producers:
            producer.init_transactions(20)
            producer.begin_transaction()
            produce(producer, "spread", list(range(PARTITIONS)), "in a transaction")
        readers = [Consumer({**servers, "group.id": f"g-{n}", "auto.offset.reset": "earliest",
                             "isolation.level": "read_committed"}) for n in range(4)]
        for reader in readers:
            reader.subscribe(["spread"])
            reader.poll(0.3)

        kafka.stop_broker(1)
        with ThreadPoolExecutor(len(producers) + 1) as pool:
            ends = [pool.submit(each.commit_transaction, 40) for each in producers]
            late = Producer({**servers, "transactional.id": "late"})
            begun = pool.submit(late.init_transactions, 40)
            time.sleep(1)
            kafka.start_broker(1)
            for each in (*ends, begun):
                assert each.result(40) is None
        late.begin_transaction()
        produce(late, "spread", list(range(PARTITIONS)), "afterwards")
        late.commit_transaction(20)
        wanted = PARTITIONS * (len(producers) + 1)
        for reader in readers:
            assert len(read(reader, wanted)) == wanted
            reader.commit(asynchronous=False)
            reader.close()


def read(reader: Consumer, count: int) -> list[bytes]:
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        for message in reader.consume(count - len(found), 0.5):
            assert message.error() is None
            found.append(message.value())
    return found


def test_what_only_a_controller_does_is_timed_out_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the brokers of Apache Kafka do, which ask theirs for a minute."""
    monkeypatch.setattr(absence, "PATIENCE_MS", 300)
    with EmbeddedKafka(brokers=3, topics=["there"]) as kafka:
        kafka.stop_broker(1)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        for asked in (
            admin.create_topics([NewTopic("x", 1)]),
            admin.delete_topics(["there"]),
            admin.create_partitions([NewPartitions("there", 2)]),
        ):
            with pytest.raises(KafkaException) as failed:
                next(iter(asked.values())).result(20)
            assert failed.value.args[0].code() == KafkaError.REQUEST_TIMED_OUT
        topics = [MetadataRequest.Topic(name="asked-for")]
        wanted = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
        answer = ask(kafka.ports[1], wanted, 12)
        assert [each.error_code for each in answer.topics] == [Error.UNKNOWN_TOPIC_OR_PARTITION]
        assert [each.node_id for each in answer.brokers] == [2, 3]
        assert answer.controller_id in (2, 3)
        for question in (QUORUM, ListPartitionReassignmentsRequest()):
            told = ask(kafka.ports[2], question, 0)
            assert told.error_code == Error.REQUEST_TIMED_OUT
        kafka.start_broker(1)
        assert admin.delete_topics(["there"])["there"].result(20) is None
        assert ask(kafka.ports[2], QUORUM, 0).topics[0].partitions[0].leader_id == 1


def test_who_asks_the_controller_is_answered_when_it_is_back_or_when_all_end() -> None:
    kafka = EmbeddedKafka(brokers=3).start()
    for is_back in (True, False):
        kafka.stop_broker(1)
        with closing(Wire("127.0.0.1", kafka.ports[1])) as wire:
            wire.send(request_frame(QUORUM, 0, 1, "me"))
            assert wire.poll(0.2) is None
            kafka.start_broker(1) if is_back else kafka.stop()
            assert isinstance(wire.receive(10), bytes) == is_back


QUORUM = DescribeQuorumRequest(
    topics=[
        DescribeQuorumRequest.Topic(
            topic_name="__cluster_metadata",
            partitions=[DescribeQuorumRequest.Partition(partition_index=0)],
        )
    ]
)


def ask(port: int, request: Any, version: int) -> Any:
    with closing(Wire("127.0.0.1", port)) as wire:
        wire.send(request_frame(request, version, 1, "me"))
        frame = wire.receive(10)
    assert isinstance(frame, bytes)
    return decode_response(frame, request.API_KEY, version)


def test_brokers_and_their_controller_come_and_go_in_any_order() -> None:
    kafka = EmbeddedKafka(brokers=3, topics={"spread": 3}).start()
    kafka.stop_broker(1)
    kafka.stop_broker(3)
    with pytest.raises(BrokerFailed, match="broker 2 is the only one that serves"):
        kafka.stop_broker(2)
    with pytest.raises(BrokerFailed, match="broker 3 of 3 could not start: the controller is"):
        kafka.start_broker(3)
    kafka.start_broker(1)
    assert sorted(leaders(kafka, "spread")) == [-1, 1, 2]
    kafka.stop_broker(2)
    kafka.start_broker(3)
    kafka.start_broker(2)
    assert sorted(leaders(kafka, "spread")) == [1, 2, 3]
    for away in ([1], [2, 1], [1, 2]):
        for node_id in away:
            kafka.stop_broker(node_id)
        kafka.restart()
        assert sorted(leaders(kafka, "spread")) == [1, 2, 3]
    kafka.stop()


def test_a_controller_that_cannot_come_back_leaves_the_others_as_they_are() -> None:
    with EmbeddedKafka(brokers=3, topics={"spread": 3}) as kafka:
        port = kafka.port
        for name in ("first", "second"):
            kafka.stop_broker(1)
            with (
                socket.create_server(("127.0.0.1", port)),
                pytest.raises(BrokerFailed, match="broker 1 of 3 could not start"),
            ):
                kafka.start_broker(1)
            assert sorted(leaders(kafka, "spread")) == [-1, 2, 3]
            kafka.start_broker(1)
            assert sorted(leaders(kafka, "spread")) == [1, 2, 3]
            kafka.create_topic(name)


def test_one_alone_is_stopped_with_stop() -> None:
    with (
        EmbeddedKafka() as kafka,
        pytest.raises(BrokerFailed, match=r"broker 1 is the only one that serves: stop\(\)"),
    ):
        kafka.stop_broker(1)


@pytest.mark.parametrize("turns", [20, 0])
def test_a_broker_that_makes_progress_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Of which the logs take longer to be opened than anybody waits; one that hangs is."""
    with EmbeddedKafka(brokers=3) as kafka:
        kafka.stop_broker(2)
        start = Broker.start

        def slowly(self: Broker) -> Later[Exception | None]:
            started: Later[Exception | None] = Later()
            opened = iter(range(turns, 0, -1))

            def go_on() -> None:
                self.logs.loading.total = next(opened, 0)
                if self.logs.loading.total:
                    self.env.clock.call_later(50, go_on)
                elif turns:
                    start(self).then(started.resolve)
                else:
                    self.env.clock.call_later(1500, lambda: start(self).then(started.resolve))

            go_on()
            return started

        monkeypatch.setattr(Broker, "start", slowly)
        monkeypatch.setattr(running, "STOP_TIMEOUT_SECONDS", 0.3)
        if turns:
            kafka.start_broker(2)
            assert kafka.stopped_brokers == []
        else:
            with pytest.raises(BrokerFailed, match=r"did not start broker 2 within 0\.3 s"):
                kafka.start_broker(2)
        monkeypatch.undo()
        time.sleep(0 if turns else 1.5)


@pytest.mark.parametrize("node_id", [0, 4, "2"])
def test_there_are_only_so_many(node_id) -> None:
    with (
        EmbeddedKafka(brokers=3) as kafka,
        pytest.raises(ValueError, match="their ids are 1 to 3"),
    ):
        kafka.stop_broker(node_id)


def test_a_cluster_that_could_not_start_starts_on_the_same_folder(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        kafka = EmbeddedKafka(tmp_path, brokers=3, port=port)
        for _ in range(2):
            with pytest.raises(BrokerFailed, match=r"broker 1 of 3 .*in use"):
                kafka.start()
    with kafka:
        kafka.create_topic("t", 3)
        assert set(leaders(kafka, "t")) == {1, 2, 3}
