"""Lines into a topic and out of it again, by the commands, as a person and a pipe use them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from subprocess import PIPE
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from kafkalite.cli.main import main
from kafkalite.client.cluster import Cluster, TryAgain
from kafkalite.client.consuming import Reader, Start
from kafkalite.client.producing import Producer as LineProducer
from kafkalite.client.producing import murmur2
from kafkalite.client.typed import split
from kafkalite.testing.embedded import EmbeddedKafka


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


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


# --- what goes in comes out -----------------------------------------------------------------------


def test_lines_come_back_as_they_were(kafka: EmbeddedKafka) -> None:
    lines = b"first\n\nthird \xff\x00 \xc3\xbc\r\nlast without an end"
    produce(kafka, "greetings", typed=lines)
    assert consume(kafka, "greetings") == lines + b"\n"
    assert consume(kafka, "greetings", "-f", "%o:%S ") == b"0:5 1:0 2:12 3:19 "


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_each_codec(kafka: EmbeddedKafka, codec: str) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(2_000))
    produce(kafka, "-z", codec, "greetings", typed=lines)
    assert consume(kafka, "greetings") == lines


def test_keys_headers_and_nulls(kafka: EmbeddedKafka) -> None:
    words = ("-K", ":", "-H", "trace=1", "-H", "empty=", "-H", "null", "-Z", "t")
    produce(kafka, *words, typed=b"k:v\n:v\nk:\nno key\nk:v:w\n")
    shown = consume(kafka, "-Z", "-f", r"%k|%s|%h\n", "t").splitlines()
    headers = b"|trace=1,empty=,null=NULL"
    assert shown == [
        each + headers for each in (b"k|v", b"NULL|v", b"k|NULL", b"NULL|no key", b"k|v:w")
    ]
    assert consume(kafka, "-K", "=", "-n", "1", "t") == b"k=v\n"
    produce(kafka, "-k", "all", "u", typed=b"a\nb\n")
    assert consume(kafka, "-K", ":", "u") == b"all:a\nall:b\n"


def test_delimiters_of_ones_own(kafka: EmbeddedKafka) -> None:
    produce(kafka, "-D", r"\0", "t", typed=b"one\nrecord\0another")
    assert consume(kafka, "-f", "[%s]", "t") == b"[one\nrecord][another]"


def test_partitions(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("t", 7)
    produce(kafka, "-p", "3", "t", typed=b"a\nb\n")
    assert consume(kafka, "-f", "%p%s ", "t") == b"3a 3b "
    assert consume(kafka, "-p", "1", "-p", "2", "t") == b""
    kafka.create_topic("keys", 7)
    keys = [b"key-%d" % number for number in range(20)]
    produce(kafka, "-K", ":", "keys", typed=b"".join(key + b":v\n" for key in keys))
    shown = dict(line.split() for line in consume(kafka, "-f", r"%k %p\n", "keys").splitlines())
    assert {key: int(shown[key]) for key in keys} == {
        key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys
    }


def test_the_hash_of_keys_is_that_of_apache_kafkas_clients() -> None:
    # What its own tests have.
    known = {
        b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, b"abc": 479470107,
    }  # fmt: skip
    assert {key: murmur2(key) - (murmur2(key) >> 31 << 32) for key in known} == known


def test_what_comes_in_pieces_is_cut_where_it_should_be() -> None:
    for delimiter in (b"\n", b"--", b"abc"):
        whole = delimiter.join([b"one", b"", b"three-", b"a", b"x" * 20])
        for size in range(1, 12):
            pieces = iter([whole[i : i + size] for i in range(0, len(whole), size)])
            assert list(split(pieces, delimiter)) == whole.split(delimiter)
    assert list(split(iter([b"a\n", None, b"b"]), b"\n")) == [b"a", None, b"b"]
    assert list(split(iter([b""]), b"\n")) == []


# --- where to begin and end -----------------------------------------------------------------------


def test_offsets_and_counts(kafka: EmbeddedKafka) -> None:
    produce(kafka, "t", typed=b"".join(b"%d\n" % number for number in range(20)))
    for words, shown in (
        (("-o", "beginning"), range(20)),
        (("-o", "17"), range(17, 20)),
        (("-o", "-2"), range(18, 20)),
        (("-o", "-200"), range(20)),
        (("-o", "end"), ()),
        (("-o", "20"), ()),
        (("-o", "99"), ()),
        (("-n", "3"), range(3)),
        (("-c", "3", "-o", "5"), range(5, 8)),
        (("-n", "0"), ()),
        (("-o", "@0"), range(20)),
        (("-o", "s@0"), range(20)),
        (("-o", "@2100-01-01"), ()),
    ):
        assert consume(kafka, *words, "t").split() == [b"%d" % each for each in shown], words


@pytest.mark.parametrize("left", [0, 3, 7])
def test_a_topic_that_is_made_anew_meanwhile_has_an_end(kafka: EmbeddedKafka, left: int) -> None:
    """Also below the end that it had when the reading began, and below where it has come to."""
    produce(kafka, "t", typed=b"old\n" * 5)
    for position in (0, 5):
        told: list[str] = []
        with closing(Cluster([("127.0.0.1", kafka.port)])) as cluster:
            reader = Reader(
                cluster, "t", partitions=(), start=Start(), follows=False, is_committed=True,
                timeout_s=10, tell=told.append,
            )  # fmt: skip
            reader._places[0].position, reader._places[0].end = position, 6
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
            admin.delete_topics(["t"])["t"].result(10)
            kafka.create_topic("t")
            produce(kafka, "t", typed=b"new\n" * left)
            found = within_ten_seconds(partial(list, reader.records()))
        assert [record.value for _, record in found] == [b"new"] * max(0, min(left, 6) - position)
        assert bool(told) == (left < 6)


def within_ten_seconds(call: Callable[[], Any]) -> Any:
    """What a call gives."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(10)
    assert found, "it does not come to an end"
    return found[0]


def test_a_time_is_looked_up(kafka: EmbeddedKafka) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(5):
        producer.produce("t", str(number), timestamp=1_600_000_000_000 + 1_000 * number)
    producer.flush(10)
    assert consume(kafka, "-o", "@1600000003000", "t") == b"3\n4\n"
    assert consume(kafka, "-o", "@2020-09-13T12:26:43+00:00", "-f", "%T", "t") == (
        b"16000000030001600000004000"
    )


def test_transactions_are_seen_as_they_ended(kafka: EmbeddedKafka) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "id"})
    producer.init_transactions(10)
    for value, is_kept in (("aborted", False), ("kept", True), ("aborted-too", False)):
        producer.begin_transaction()
        producer.produce("t", value)
        producer.flush(10)
        producer.commit_transaction(10) if is_kept else producer.abort_transaction(10)
    produce(kafka, "t", typed=b"plain\n")
    assert consume(kafka, "t") == b"kept\nplain\n"
    assert consume(kafka, "--isolation", "read_uncommitted", "t") == (
        b"aborted\nkept\naborted-too\nplain\n"
    )
    assert consume(kafka, "-o", "1", "t") == b"kept\nplain\n"


def test_other_clients_read_and_write_the_same(kafka: EmbeddedKafka) -> None:
    produce(kafka, "-K", ":", "-H", "a=b", "t", typed=b"key:value\n")
    consumer = Consumer({
        "bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "check.crcs": True,
        "auto.offset.reset": "earliest",
    })  # fmt: skip
    consumer.subscribe(["t"])
    message = consumer.poll(15)
    assert (message.key(), message.value(), message.headers()) == (
        b"key", b"value", [("a", b"b")],
    )  # fmt: skip
    consumer.close()


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_topic_that_is_not_there(kafka: EmbeddedKafka) -> None:
    result = run("consume", kafka, "missing")
    assert (result.exit_code, result.stderr) == (1, "kafkalite: there is no topic missing\n")


def test_a_topic_that_is_not_made_on_demand() -> None:
    with EmbeddedKafka(settings={"auto.create.topics.enable": False}) as kafka:
        result = run("produce", kafka, "--timeout", "0.3", "missing", typed=b"x\n")
    assert result.exit_code == 1
    assert "there is no topic missing, and asking for it does not create it" in result.stderr


def test_a_partition_that_is_not_there(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("t", 2)
    for command in ("produce", "consume"):
        result = run(command, kafka, "-p", "2", "t")
        assert result.exit_code == 1
        assert "topic t has no partition 2: it has 2, from 0 on" in result.stderr


def test_a_name_that_no_topic_can_have(kafka: EmbeddedKafka) -> None:
    for command in ("produce", "consume"):
        result = run(command, kafka, "no topic")
        assert (result.exit_code, "INVALID_TOPIC" in result.stderr) == (1, True)


def test_a_line_that_is_refused_is_named(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("small", 1, {"max.message.bytes": 1_000})
    lines = b"".join(b"%d\n" % number for number in range(500)) + b"x" * 2_000 + b"\n"
    result = run("produce", kafka, "small", typed=lines)
    assert result.exit_code == 1
    assert "line 501 is not written to small-0, 500 others are: MESSAGE_TOO_LARGE" in result.stderr
    assert consume(kafka, "small").count(b"\n") == 500
    kafka.create_topic("compacted", 1, {"cleanup.policy": "compact"})
    result = run("produce", kafka, "-K", ":", "compacted", typed=b"a:b\nkeyless\n")
    assert result.exit_code == 1
    assert "line 2 is not written to compacted-0, 0 others are: INVALID_RECORD" in result.stderr


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\1x"])
def test_what_is_no_broker_is_told_in_a_sentence(greeting: bytes) -> None:
    def serve(listening: socket.socket) -> None:
        connected, _ = listening.accept()
        with connected:
            connected.recv(1_000)
            connected.sendall(greeting)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve, args=(listening,))
        server.start()
        where = f"127.0.0.1:{listening.getsockname()[1]}"
        result = CliRunner().invoke(main, ["consume", "-b", where, "t"])
        server.join(10)
    assert result.exit_code == 4
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("kafkalite: no broker answers (")
    assert where in result.stderr


# --- brokers that come and go ---------------------------------------------------------------------


def test_several_brokers(kafka: EmbeddedKafka) -> None:
    with EmbeddedKafka(brokers=3, topics={"t": 6}) as cluster:
        lines = b"".join(b"%d:%d\n" % (number, number) for number in range(600))
        produce(cluster, "-K", ":", "t", typed=lines)
        cluster.stop_broker(2)
        result = run("consume", cluster, "--timeout", "0.3", "t")
        assert result.exit_code == 1
        assert "has no leader: is its broker up?" in result.stderr
        back = threading.Timer(0.5, cluster.start_broker, [2])
        back.start()
        assert sorted(consume(cluster, "-K", ":", "t").splitlines(True)) == sorted(
            lines.splitlines(True)
        )
        back.join()


def test_lines_are_written_once_over_a_restart() -> None:
    with EmbeddedKafka(topics={"t": 2}) as kafka:
        call = [sys.executable, "-m", "kafkalite", "produce", "-b", kafka.bootstrap_servers]
        program = subprocess.Popen([*call, "-K", ":", "t"], stdin=PIPE, stderr=PIPE)
        assert program.stdin is not None
        for number in range(60):
            program.stdin.write(b"%d:%d\n" % (number % 5, number))
            program.stdin.flush()
            while number == 0 and not consume(kafka, "t"):
                time.sleep(0.01)  # until the program has begun
            time.sleep(0.01)
            if number in (20, 40):
                kafka.restart()
        _, errors = program.communicate(timeout=30)
        assert (program.returncode, errors) == (0, b"")
        shown = sorted(map(int, consume(kafka, "t").split()))
        assert shown == list(range(60))


class Forgetful(Cluster):
    """A cluster of whose answers every second one is lost."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        super().__init__([("127.0.0.1", kafka.port)])
        self.asked = 0

    def finish(self, node_id: int) -> Any:
        answer = super().finish(node_id)
        self.asked += 1
        if self.asked % 2:
            raise TryAgain("the answer is lost")
        return answer


def test_a_lost_answer_writes_nothing_twice(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("t", 3)
    cluster = Forgetful(kafka)
    producer = LineProducer(cluster, "t", partition=None, headers=(), codec=0, timeout_s=10)
    for number in range(30):
        producer.add(b"%d" % number, b"%d" % number)
        if number % 5 == 4:
            producer.flush()
    cluster.close()
    assert (producer.written, cluster.asked) == (30, 12)
    assert sorted(map(int, consume(kafka, "t").split())) == list(range(30))


def test_what_is_sent_while_more_is_gathered_is_written_once_and_in_order(
    kafka: EmbeddedKafka,
) -> None:
    kafka.create_topic("t", 1)
    cluster = Forgetful(kafka)
    producer = LineProducer(
        cluster, "t", partition=None, headers=(), codec=0, timeout_s=10, batch_bytes=1_000
    )  # fmt: skip
    lines = [b"%d" % number for number in range(2_000)]
    while_gathering = 0
    for first in range(0, len(lines), 10):
        producer.add_values(lines[first : first + 10])
        producer.push()
        time.sleep(0.002)  # an answer may come
        while_gathering = max(while_gathering, producer.written)
    producer.flush()
    cluster.close()
    assert while_gathering > 0
    assert consume(kafka, "t") == b"".join(b"%b\n" % line for line in lines)


@pytest.mark.parametrize("words", [(), ("-z", "lz4"), ("-K", ":"), ("-H", "a=b")])
def test_what_is_printed_at_once_is_what_is_printed_one_by_one(
    kafka: EmbeddedKafka, words: tuple[str, ...]
) -> None:
    """A number of records has them printed one by one."""
    lines = b"".join(b"k:%b\n" % (b"v" * (number % 300)) for number in range(3_000))
    produce(kafka, "t", "-p", "0", *words, typed=lines + b"\n")
    produce(kafka, "t", "-p", "0", "-Z", typed=b"x\n\ny\n")
    for shape in ((), ("-Z",), ("-f", "<%s>"), ("-o", "1500"), ("--until", "1500"), ("-f", "")):
        one_by_one = consume(kafka, "t", *shape, "-n", "1000000")
        assert consume(kafka, "t", *shape) == one_by_one
        assert len(one_by_one) > 1_000 or "" in shape


# --- in a pipe ------------------------------------------------------------------------------------


def program(command: str, kafka: EmbeddedKafka, *words: str) -> subprocess.Popen[bytes]:
    call = [sys.executable, "-m", "kafkalite", command, "-b", kafka.bootstrap_servers, *words]
    return subprocess.Popen(call, stdin=PIPE, stdout=PIPE, stderr=PIPE)


def test_nobody_reads_any_more(kafka: EmbeddedKafka) -> None:
    produce(kafka, "t", typed=b"".join(b"line %d\n" % number for number in range(100_000)))
    with program("consume", kafka, "t") as consuming:
        assert consuming.stdout is not None
        assert consuming.stderr is not None
        assert consuming.stdout.readline() == b"line 0\n"
        consuming.stdout.close()
        assert (consuming.stderr.read(), consuming.wait(20)) == (b"", 141)


def test_lines_are_sent_as_they_are_typed_and_shown_as_they_come(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("t")
    producing, following = (
        program("produce", kafka, "t"),
        program("consume", kafka, "--follow", "t"),
    )
    assert producing.stdin is not None
    assert following.stdout is not None
    for number in range(3):
        producing.stdin.write(b"line %d\nhalf" % number if number == 2 else b"line %d\n" % number)
        producing.stdin.flush()
        assert following.stdout.readline() == b"line %d\n" % number
    for each, said in (
        (following, b""),
        (producing, b"kafkalite: interrupted; 3 records are written\n"),
    ):
        each.send_signal(signal.SIGINT)
        _, errors = each.communicate(timeout=20)
        assert (each.returncode, errors) == (130, said)
