"""Records, arguments and topics that a person did not think of, through produce and consume."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.cli.main import main
from kafkalite.client import consuming, producing
from kafkalite.client.cluster import ClientFailed, Cluster, Patience, TryAgain
from kafkalite.client.consuming import EARLIEST, Reader, Start
from kafkalite.client.producing import Producer as LineProducer
from kafkalite.protocol.messages import FetchRequest, ProduceRequest, ProduceResponse
from kafkalite.testing.embedded import EmbeddedKafka


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def cluster(kafka: EmbeddedKafka) -> Iterator[Cluster]:
    found = Cluster([("127.0.0.1", kafka.port)])
    yield found
    found.close()


def run(command: str, kafka: EmbeddedKafka, *words: str, typed: bytes = b"") -> Result:
    call = [command, "-b", kafka.bootstrap_servers, *words]
    return CliRunner().invoke(main, call, input=typed)


def produce(kafka: EmbeddedKafka, *words: str, typed: bytes) -> None:
    result = run("produce", kafka, *words, typed=typed)
    assert (result.exit_code, result.output) == (0, ""), result.output


def consume(kafka: EmbeddedKafka, *words: str) -> bytes:
    result = run("consume", kafka, *words)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


# --- what is typed --------------------------------------------------------------------------------


def test_bytes_are_written_as_they_were_typed(kafka: EmbeddedKafka) -> None:
    typed = os.fsdecode(b"\xff")
    produce(kafka, "-k", f"k{typed}", "-H", f"h={typed}", "t", typed=b"v\n")
    assert consume(kafka, "-f", f"{typed}%k %h", "t") == b"\xffk\xff h=\xff"
    produce(kafka, "-K", typed, "u", typed=b"k\xffv\n")
    assert consume(kafka, "-K", typed, "u") == b"k\xffv\n"
    produce(kafka, "-D", typed, "w", typed=b"a\xffb")
    assert consume(kafka, "w") == b"a\nb\n"


def test_records_end_in_something(kafka: EmbeddedKafka) -> None:
    result = run("produce", kafka, "-D", "", "t", typed=b"a\n")
    assert (result.exit_code, "a record ends in a byte at least" in result.stderr) == (2, True)


# --- what is written ------------------------------------------------------------------------------


class Noting(Cluster):
    """A cluster that notes how large the batches are that it is asked to write."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        super().__init__([("127.0.0.1", kafka.port)])
        self.sizes: list[int] = []

    def begin(self, node_id: int, request: Any) -> None:
        if isinstance(request, ProduceRequest):
            for topic in request.topic_data:
                self.sizes += [len(each.records) for each in topic.partition_data]
        super().begin(node_id, request)


def test_headers_count_as_what_they_are(kafka: EmbeddedKafka) -> None:
    cluster = Noting(kafka)
    headers = (("a" * 10_000, b"b" * 10_000), ("c", None))
    producer = LineProducer(
        cluster, "t", partition=None, headers=headers, codec=0, timeout_s=10
    )  # fmt: skip
    for _ in range(200):
        producer.add(None, b"")
    producer.flush()
    cluster.close()
    assert max(cluster.sizes) <= producing.BATCH_BYTES
    assert len(cluster.sizes) >= 4


def test_each_line_that_is_not_acknowledged_is_told(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("small", 1, {"max.message.bytes": 1_000})
    lines = b"a\nb\n" + b"x" * 2_000 + b"\nc\nd\n"
    result = run("produce", kafka, "small", typed=lines)
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "not acknowledged: lines 3 to 5, and nothing behind line 5 was sent\n"
    )
    assert consume(kafka, "small") == b"a\nb\n"
    kafka.create_topic("compacted", 1, {"cleanup.policy": "compact"})
    result = run("produce", kafka, "-K", ":", "compacted", typed=b"a:b\nkeyless\n")
    assert "not acknowledged: lines 1 to 2, " in result.stderr
    assert consume(kafka, "compacted") == b""


def test_lines_are_told_also_when_a_broker_goes_away(
    kafka: EmbeddedKafka, cluster: Cluster
) -> None:
    producer = LineProducer(
        cluster, "t", partition=None, headers=(), codec=0, timeout_s=0.2
    )  # fmt: skip
    producer.add(None, b"1")
    producer.flush()
    kafka.stop()
    producer.add(None, b"2")
    with pytest.raises(
        ClientFailed, match="not acknowledged: line 2, and nothing behind line 2 was"
    ):
        producer.flush()


class Interrupted(Cluster):
    """A cluster that somebody waits for no longer."""

    def finish(self, node_id: int) -> Any:
        answer = super().finish(node_id)
        if isinstance(answer, ProduceResponse):
            raise KeyboardInterrupt
        return answer


def test_what_was_on_its_way_when_somebody_interrupts_is_told(kafka: EmbeddedKafka) -> None:
    cluster = Interrupted([("127.0.0.1", kafka.port)])
    producer = LineProducer(cluster, "t", partition=None, headers=(), codec=0, timeout_s=5)
    for _ in range(3):
        producer.add(None, b"x")
    with pytest.raises(KeyboardInterrupt):
        producer.flush()
    cluster.close()
    assert producer.so_far == "0 records are written, and 3 more may be"
    assert consume(kafka, "-f", "%s", "t") == b"xxx"


def test_numbers_of_lines_that_follow_each_other_are_one_span() -> None:
    assert producing._spans([1, 2, 3, 7, 9, 10]) == ["1 to 3", "7", "9 to 10"]
    assert producing._spans([]) == []


@pytest.mark.parametrize("before", [0, 1, 5, 9, 10])
def test_sequence_numbers_begin_anew_behind_the_last(
    kafka: EmbeddedKafka, cluster: Cluster, before: int
) -> None:
    """Two thousand million lines are some hours of a busy pipe."""
    producer = LineProducer(cluster, "t", partition=0, headers=(), codec=0, timeout_s=5)
    producer._sequences[0] = producing.HIGHEST_SEQUENCE - before
    for number in range(30):
        producer.add(None, b"%d" % number)
        if number % 10 == 9:
            producer.flush()
    assert consume(kafka, "t").split() == [b"%d" % number for number in range(30)]


# --- what is read ---------------------------------------------------------------------------------


def make_anew(kafka: EmbeddedKafka, count: int) -> None:
    """The topic t, with so many records."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.delete_topics(["t"])["t"].result(10)
    admin.create_topics([NewTopic("t", 1)])["t"].result(10)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(count):
        producer.produce("t", f"new {number}")
    producer.flush(10)


def reader(cluster: Cluster, start: Start, tell: list[str], **options: Any) -> Reader:
    return Reader(
        cluster, "t", partitions=(), start=start, follows="idle_s" in options, is_committed=True,
        timeout_s=options.get("timeout_s", 5), tell=tell.append,
    )  # fmt: skip


def values(found: Reader) -> list[bytes | None] | None:
    """What it reads; None when it does not come to an end."""
    shown: list[bytes | None] = []
    thread = threading.Thread(
        target=lambda: shown.extend(record.value for _, record in found.records()), daemon=True
    )
    thread.start()
    thread.join(10)
    return None if thread.is_alive() else shown


@pytest.mark.parametrize(
    ("start", "shown"),
    [(Start(timestamp=EARLIEST), [b"new 0", b"new 1", b"new 2"]), (Start(offset=5), [])],
)
def test_an_end_that_has_gone_is_not_waited_for(
    kafka: EmbeddedKafka, cluster: Cluster, start: Start, shown: list[bytes]
) -> None:
    produce(kafka, "t", typed=b"".join(b"%d\n" % number for number in range(9)))
    told: list[str] = []
    found = reader(cluster, start, told)
    make_anew(kafka, 3)
    assert values(found) == shown
    assert len(told) == 1
    assert "t-0" in told[0]


class Failing(Cluster):
    """A cluster whose broker answers, but does not let a partition be read."""

    def ask(self, node_id: int, request: Any) -> Any:
        answer = super().ask(node_id, request)
        if isinstance(request, FetchRequest):
            for topic in answer.responses:
                for each in topic.partitions:
                    each.error_code, each.records = 56, None  # KAFKA_STORAGE_ERROR
        return answer


def test_a_partition_that_cannot_be_read_is_not_tried_for_ever(kafka: EmbeddedKafka) -> None:
    produce(kafka, "t", typed=b"1\n")
    cluster = Failing([("127.0.0.1", kafka.port)])
    found = reader(cluster, Start(), [], timeout_s=0.5)
    failed: list[Exception] = []

    def read() -> None:
        try:
            list(found.records())
        except ClientFailed as failure:
            failed.append(failure)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(10)
    cluster.close()
    assert "KAFKA_STORAGE_ERROR" in str(failed)


def test_a_reader_who_takes_time_is_not_a_broker_that_does_not_answer(
    kafka: EmbeddedKafka, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "PARTITION_BYTES", 1)  # a batch an answer
    for number in range(3):
        produce(kafka, "t", typed=b"%d\n" % number)
    shown = []
    for _, record in reader(cluster, Start(), [], timeout_s=0.2).records():
        shown.append(record.value)
        time.sleep(0.3)  # somebody reads it in a pager
        kafka.restart()  # or the connection was idle for too long
    assert shown == [b"0", b"1", b"2"]


class LosingOne(Cluster):
    """A cluster of which the second fetch is lost."""

    fetches = 0

    def ask(self, node_id: int, request: Any) -> Any:
        self.fetches += isinstance(request, FetchRequest)
        if self.fetches == 2:
            self.fetches += 1
            raise TryAgain("the answer is lost")
        return super().ask(node_id, request)


def test_a_reader_may_take_time_between_the_brokers_that_it_reads() -> None:
    with EmbeddedKafka(brokers=2, topics={"t": 2}) as kafka:
        for partition in ("0", "1"):
            produce(kafka, "-p", partition, "t", typed=b"x\n")
        cluster = LosingOne([("127.0.0.1", kafka.port)])
        shown = []
        for index, _ in reader(cluster, Start(), [], timeout_s=0.2).records():
            shown.append(index)
            time.sleep(0.3)
        cluster.close()
    assert sorted(shown) == [0, 1]


def test_an_end_when_nothing_comes_comes_behind_all_there_is(kafka: EmbeddedKafka) -> None:
    """However long somebody takes for what has come."""
    for _ in range(5):
        produce(kafka, "t", typed=b"x" * 600_000 + b"\n")  # two batches an answer
    assert consume(kafka, "--exit-idle", "0", "-f", "%S ", "t") == b"600000 " * 5


def test_a_fetch_that_is_lost_is_no_end(kafka: EmbeddedKafka) -> None:
    for _ in range(5):
        produce(kafka, "t", typed=b"x" * 600_000 + b"\n")
    cluster = LosingOne([("127.0.0.1", kafka.port)])
    found = reader(cluster, Start(), [], idle_s=0)
    shown = [len(record.value or b"") for batches in found.rounds(idle_s=0)
             for _, _, records in batches for record in records]  # fmt: skip
    cluster.close()
    assert shown == [600_000] * 5


class Asking(Cluster):
    """A cluster that notes in which order partitions are asked for."""

    def ask(self, node_id: int, request: Any) -> Any:
        if isinstance(request, FetchRequest):
            [topic] = request.topics
            self.__dict__.setdefault("orders", []).append(
                [each.partition for each in topic.partitions]
            )
        return super().ask(node_id, request)


def test_what_was_served_is_asked_for_last(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("t", 3)
    cluster = Asking([("127.0.0.1", kafka.port)])
    found = reader(cluster, Start(), [], idle_s=0)
    for partition in "001":
        produce(kafka, "-p", partition, "t", typed=b"1\n")
        assert len(list(found.round())) == 1
    list(found.round())
    cluster.close()
    assert cluster.__dict__["orders"] == [[0, 1, 2], [1, 2, 0], [1, 2, 0], [2, 0, 1]]


def test_patience_counts_from_the_question_on() -> None:
    patience = Patience(0.2)
    time.sleep(0.25)
    patience.begin()
    patience.wait_after(TryAgain("once"))
    patience.begin()
    patience.wait_after(TryAgain("twice"))
    patience.begin()
    with pytest.raises(TryAgain, match="thrice"):
        patience.wait_after(TryAgain("thrice"))
