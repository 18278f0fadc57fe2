"""kafkalite produce and consume: beside kcat and Apache Kafka's console tools, on both brokers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.compat import client_builds
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic
from tests.compat.java_tools import JavaTools
from tests.compat.test_kcat import CALL_TIMEOUT_S
from tests.compat.transactional_peer import Peer
from tests.compat.transcript import class_of

MORE_CODECS = ("none", "gzip", "snappy", "lz4")
CODECS = ["zstd", *(pytest.param(codec, marks=pytest.mark.full) for codec in MORE_CODECS)]
BINARY = bytes(each for each in range(256) if each not in (9, 10))
SHAPE = r"%t|%p|%o|%k|%s|%T|%h|%S|%K\n"

Run = Callable[..., bytes]

pytestmark = pytest.mark.xdist_group("java-tools")


def output(call: list[str], typed: bytes, around: dict[str, str] | None = None) -> bytes:
    done = subprocess.run(
        call, input=typed, capture_output=True, timeout=CALL_TIMEOUT_S, check=False,
        env={**os.environ, **(around or {})},
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(call)}\n{done.stderr[-3000:].decode()}"
    return done.stdout


@pytest.fixture
def kafkalite(broker: Broker) -> Run:
    def run(command: str, *words: str, typed: bytes = b"") -> bytes:
        call = [sys.executable, "-m", "kafkalite", command, "-b", broker.bootstrap, *words]
        return output(call, typed)

    return run


@pytest.fixture
def kcat(broker: Broker) -> Run:
    program, around = client_builds.kcat()

    def run(*words: str, typed: bytes = b"") -> bytes:
        return output([*program, "-b", broker.bootstrap, *words], typed, around)

    return run


def lines(count: int = 50) -> bytes:
    return b"".join(b"key-%d\t%s %d\n" % (number, BINARY, number) for number in range(count))


@pytest.mark.parametrize("codec", CODECS)
def test_kcat_reads_what_is_produced(
    codec: str, kafkalite: Run, kcat: Run, make_topic: MakeTopic
) -> None:
    topic = make_topic(3)
    kafkalite("produce", "-K", "\t", "-z", codec, topic, typed=lines())
    shown = kcat("-C", "-t", topic, "-K", "\t", "-e", "-q")
    assert sorted(shown.splitlines(True)) == sorted(lines().splitlines(True))


@pytest.mark.parametrize("codec", CODECS)
def test_what_kcat_produces_is_read(
    codec: str, kafkalite: Run, kcat: Run, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    kcat("-P", "-t", topic, "-K", "\t", "-z", codec, typed=lines())
    assert kafkalite("consume", "-K", r"\t", topic) == lines()


def test_format_tokens_are_kcats(kafkalite: Run, kcat: Run, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    words = ("-H", "trace=1", "-H", "other=two", "-K", ":", "-Z")
    kafkalite("produce", *words, "-p", "1", topic, typed=b"key:value\n:no key\ngone:\n\xff:\xfe\n")
    kcat("-P", "-t", topic, "-p", "0", "-H", "a=b", typed=b"of kcat\n")
    shown = kafkalite("consume", "-f", SHAPE, topic)
    assert sorted(shown.splitlines()) == sorted(
        kcat("-C", "-t", topic, "-f", SHAPE, "-e", "-q").splitlines()
    )
    for where in ("beginning", "end", "-1", "-2", "2"):
        ours = kafkalite("consume", "-p", "1", "-o", where, "-f", SHAPE, topic)
        theirs = kcat("-C", "-t", topic, "-p", "1", "-o", where, "-f", SHAPE, "-e", "-q")
        assert ours == theirs, where


def test_keys_go_where_kcats_murmur2_has_them(
    kafkalite: Run, kcat: Run, make_topic: MakeTopic
) -> None:
    topic, other = make_topic(7), make_topic(7)
    kafkalite("produce", "-K", "\t", topic, typed=lines())
    kcat("-P", "-t", other, "-K", "\t", "-X", "partitioner=murmur2_random", typed=lines())
    placed = [kafkalite("consume", "-f", r"%k %p\n", name) for name in (topic, other)]
    assert sorted(placed[0].splitlines()) == sorted(placed[1].splitlines())


def test_apache_kafkas_console_tools_read_and_write_the_same(
    broker: Broker, kafkalite: Run, tools: JavaTools, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    kafkalite("produce", "-K", ":", "-z", "lz4", topic, typed=b"one:first\ntwo:second\n")
    tools.run(
        class_of("kafka-console-producer"), *where,
        "--reader-property", "parse.key=true", "--reader-property", "key.separator=:",
        "--compression-codec", "zstd", text="three:third\n",
    )  # fmt: skip
    said = tools.run(
        class_of("kafka-console-consumer"), *where,
        "--partition", "0", "--offset", "earliest", "--max-messages", "3", "--timeout-ms", "10000",
        "--formatter-property", "print.key=true", "--formatter-property", "key.separator=:",
    )  # fmt: skip
    assert "one:first\ntwo:second\nthree:third\n" in said
    assert kafkalite("consume", "-K", ":", topic) == b"one:first\ntwo:second\nthree:third\n"


def test_aborted_and_open_transactions_are_hidden(
    broker: Broker, kafkalite: Run, make_topic: MakeTopic, unique: Callable[[str], str]
) -> None:
    topic, peer = make_topic(), Peer(broker, unique("id"))
    who = peer.init()
    for value, is_kept in ((b"aborted", False), (b"kept", True)):
        peer.add(who, topic)
        peer.produce(who, 0, topic, value)
        _, who = peer.end(who, commit=is_kept, v=5)
    peer.add(who, topic)
    peer.produce(who, 0, topic, b"open")
    try:
        assert kafkalite("consume", topic) == b"kept\n"
        every = kafkalite("consume", "--isolation", "read_uncommitted", topic)
        assert every == b"aborted\nkept\nopen\n"
    finally:
        peer.end(who, commit=False, v=5)
        peer.close()


def test_a_topic_that_is_not_there(
    broker: Broker, kafkalite: Run, unique: Callable[[str], str]
) -> None:
    topic = unique("topic")
    call = [sys.executable, "-m", "kafkalite", "consume", "-b", broker.bootstrap, topic]
    done = subprocess.run(call, capture_output=True, timeout=CALL_TIMEOUT_S, check=False)
    said = f"kafkalite: there is no topic {topic}\n".encode()
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", said)
    kafkalite("produce", topic, typed=b"made on demand\n")
    assert kafkalite("consume", topic) == b"made on demand\n"
