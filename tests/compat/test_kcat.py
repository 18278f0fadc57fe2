"""kcat: written, read and listed by the command line of librdkafka, on both brokers."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat import client_builds
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic
from tests.compat.transactional_peer import Peer

CALL_TIMEOUT_S = 60
MORE_CODECS = ("none", "snappy", "lz4", "zstd")

Kcat = Callable[..., str]


@pytest.fixture
def kcat(broker: Broker) -> Kcat:
    """Runs kcat with these words and this input; gives what it printed."""
    program, around = client_builds.kcat()

    def run(*words: str, typed: str = "") -> str:
        done = subprocess.run(
            [*program, "-b", broker.bootstrap, *words], input=typed, capture_output=True,
            text=True, timeout=CALL_TIMEOUT_S, env={**os.environ, **around}, check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stderr[-3000:]}"
        return done.stdout

    return run


def typed(count: int = 50) -> str:
    return "".join(f"key-{number}\tvalue {number}\n" for number in range(count))


@pytest.mark.parametrize(
    "codec", ["gzip", *(pytest.param(codec, marks=pytest.mark.full) for codec in MORE_CODECS)]
)
def test_codecs(codec: str, kcat: Kcat, make_topic: MakeTopic) -> None:
    topic = make_topic()
    kcat("-P", "-t", topic, "-K", "\t", "-z", codec, typed=typed())
    assert kcat("-C", "-t", topic, "-K", "\t", "-e", "-q") == typed()


def test_metadata(broker: Broker, kcat: Kcat, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    listed = json.loads(kcat("-L", "-J", "-t", topic))
    assert [each["name"] for each in listed["brokers"]] == [broker.bootstrap]
    [found] = listed["topics"]
    assert found["topic"] == topic
    assert [each["partition"] for each in found["partitions"]] == [0, 1, 2]


def test_headers_tombstones_and_times(kcat: Kcat, make_topic: MakeTopic) -> None:
    topic = make_topic()
    kcat("-P", "-t", topic, "-H", "trace=1", "-H", "other=2", typed="value\n")
    kcat("-P", "-t", topic, "-K", ":", "-Z", typed="gone:\n")
    first, second = map(json.loads, kcat("-C", "-t", topic, "-J", "-e", "-q").splitlines())
    assert (first["headers"], first["payload"]) == (["trace", "1", "other", "2"], "value")
    assert (second["key"], second["payload"]) == ("gone", None)
    asked = kcat("-Q", "-t", f"{topic}:0:{first['ts']}")
    assert asked.split() == [topic, "[0]", "offset", "0"]


def test_group_resumes_where_it_was(kcat: Kcat, make_topic: MakeTopic, unique) -> None:
    topic, group = make_topic(), unique("group")
    kcat("-P", "-t", topic, "-K", "\t", typed=typed(10))
    member = ("-X", "auto.offset.reset=earliest", "-K", "\t", "-q", "-G", group, topic)
    assert kcat("-c", "4", *member) == typed(4)
    assert kcat("-c", "6", *member) == typed(10).removeprefix(typed(4))


@pytest.mark.full
def test_partitions_and_offsets_are_chosen(kcat: Kcat, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    kcat("-P", "-t", topic, "-p", "2", typed="a\nb\nc\nd\n")
    assert kcat("-C", "-t", topic, "-p", "2", "-o", "1", "-c", "2", "-q") == "b\nc\n"
    assert kcat("-C", "-t", topic, "-p", "2", "-o", "-1", "-e", "-q") == "d\n"
    assert kcat("-C", "-t", topic, "-p", "0", "-e", "-q") == ""


@pytest.mark.full
def test_large_messages(kcat: Kcat, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(max_message_bytes="6000000")
    file = tmp_path / "large"
    file.write_text("0123456789" * 300_000)
    kcat("-P", "-t", topic, "-X", "message.max.bytes=6000000", str(file))
    assert kcat("-C", "-t", topic, "-e", "-q", "-c", "1") == file.read_text() + "\n"


@pytest.mark.full
def test_aborted_records_are_hidden(
    broker: Broker, kcat: Kcat, make_topic: MakeTopic, unique
) -> None:
    topic, peer = make_topic(), Peer(broker, unique("id"))
    who = peer.init()
    for value, is_kept in ((b"aborted", False), (b"kept", True)):
        peer.add(who, topic)
        peer.produce(who, 0, topic, value)
        _, who = peer.end(who, commit=is_kept, v=5)
    peer.close()
    read = ("-C", "-t", topic, "-e", "-q", "-X")
    assert kcat(*read, "isolation.level=read_committed") == "kept\n"
    assert kcat(*read, "isolation.level=read_uncommitted") == "aborted\nkept\n"
