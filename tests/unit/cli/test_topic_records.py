"""Records by the command line: JSON and back, copies, sums, ends, terminals, schemas, top."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from kafkalite.cli._record_format import printer, readable
from kafkalite.cli._record_json import BadLine, from_line
from kafkalite.cli.main import main
from kafkalite.client.cluster import Cluster
from kafkalite.client.producing import Producer as LineProducer
from kafkalite.records.record import Record
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.schema_registry import schema_registry


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


def run(kafka: EmbeddedKafka, *words: str, typed: bytes = b"") -> Result:
    return CliRunner().invoke(main, [*words, "-b", kafka.bootstrap_servers], input=typed)


def done(kafka: EmbeddedKafka, *words: str, typed: bytes = b"") -> bytes:
    result = run(kafka, *words, typed=typed)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


def filled(kafka: EmbeddedKafka, topic: str = "t") -> None:
    """Ten records of the seconds from 1 600 000 000 on, by turns in two partitions."""
    kafka.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(10):
        producer.produce(
            topic, None if number == 4 else b"\xff%d" % number, b"key" if number % 2 else None,
            number % 2, timestamp=1_600_000_000_000 + 1_000 * number,
            headers=[("h\u00fc", b"\x00\x80"), ("n", None)] if number == 3 else [],
        )  # fmt: skip
    producer.flush(10)


SHAPE = r"%p %o %T %k %s %h %K %S\n"


def test_json_goes_there_and_back(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    lines = done(kafka, "consume", "-J", "t")
    first = json.loads(lines.splitlines()[0])
    assert first == {
        "topic": "t", "partition": 0, "offset": 0, "tstype": "create", "ts": 1_600_000_000_000,
        "key": None, "payload": {"base64": "/zA="},
    }  # fmt: skip
    kafka.create_topic("again", 2)
    done(kafka, "produce", "-J", "--same-partitions", "again", typed=lines)
    before, after = (done(kafka, "topic", "read", "-f", SHAPE, each) for each in ("t", "again"))
    assert before == after
    assert before.count(b"\n") == 10


@pytest.mark.parametrize(("line", "said"), [
    (b"x", "this is no JSON"),
    (b"[]", "no JSON object"),
    (b'{"value": 1}', "'value' is none of topic, partition"),
    (b'{"key": {"base64": "?"}}', "key: this is neither text nor base64"),
    (b'{"headers": ["a"]}', "expected a list of name, value"),
    (b'{"ts": "soon"}', "ts: 'soon' is no whole number"),
    (b'{"partition": true}', "partition: True is no whole number"),
    (b'{"ts": 9223372036854775808}', "ts: 9223372036854775808 does not fit in 64 bits"),
    (b'{"payload": {"a": "\\ud800"}}', "payload: this is neither text nor base64"),
    (b'{"payload": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
])  # fmt: skip
def test_a_line_that_is_no_record(line: bytes, said: str) -> None:
    with pytest.raises(BadLine, match=said.replace("?", r"\?")):
        from_line(line)


def test_what_stands_before_a_line_that_is_no_record_is_written(kafka: EmbeddedKafka) -> None:
    result = run(kafka, "produce", "-J", "t", typed=b'{"payload": {"a": 1}}\n\n{"payload"\n')
    assert result.exit_code == 1
    assert "line 3: this is no JSON" in result.stderr
    assert "1 records before it are written" in result.stderr
    assert done(kafka, "consume", "t") == b'{"a": 1}\n'


def test_an_end_by_offset_and_time(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    for words, count in (
        (("--until", "3"), 6), (("--until", "-2"), 6), (("--until", "@1600000003000"), 3),
        (("-o", "@1600000003000", "--until", "@1600000006000"), 3), (("--until", "beginning"), 0),
        (("--until", "end"), 10), (("--until", "99"), 10), (("-o", "4", "--until", "2"), 0),
    ):  # fmt: skip
        assert done(kafka, "consume", *words, "-f", "x", "t") == b"x" * count, words
    for wrong in ("--until soon", "--until 3 --follow", "-J -f %s"):
        assert run(kafka, "consume", *wrong.split(), "t").exit_code == 2


def test_an_end_when_nothing_comes(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    began = time.monotonic()
    assert done(kafka, "consume", "--exit-idle", "1", "-f", "x", "t") == b"x" * 10
    assert 1 <= time.monotonic() - began < 10


def test_a_record_without_a_time_is_copied_without_one(kafka: EmbeddedKafka) -> None:
    """One of 1970 would be the first that retention deletes."""
    cluster = Cluster([("127.0.0.1", kafka.port)])
    producer = LineProducer(cluster, "t", partition=None, headers=(), codec=0, timeout_s=10)
    producer.add(None, b"x", timestamp=-1)
    producer.flush()
    cluster.close()
    done(kafka, "topic", "copy", "t", "c")
    assert done(kafka, "consume", "-f", "%T", "c") == b"-1"


def test_a_topic_is_not_copied_to_itself(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    words = ("topic", "copy", "t", "t")
    assert run(kafka, *words).exit_code == 2
    another_way = run(kafka, *words, "--to-bootstrap", kafka.bootstrap_servers)
    assert another_way.exit_code == 1
    assert "t would be copied to itself: both are one cluster" in another_way.stderr
    assert len(done(kafka, "consume", "-f", "x", "t")) == 10


def test_copies(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    kafka.create_topic("c", 2)
    assert done(kafka, "topic", "copy", "t", "c", "--same-partitions", "-z", "zstd") == (
        b"c: 10 records are copied from t\n"
    )
    assert done(kafka, "topic", "read", "-f", SHAPE, "c") == done(
        kafka, "topic", "read", "-f", SHAPE, "t"
    )
    [codecs] = {str(each["codecs"]) for each in json.loads(
        done(kafka, "topic", "stat", "c", "-o", "json")
    )}  # fmt: skip
    assert codecs == "['zstd']"
    with EmbeddedKafka() as other:
        words = ("topic", "copy", "t", "t", "--from", "4")
        copied = done(kafka, *words, "--to-bootstrap", other.bootstrap_servers)
        assert copied == b"t: 2 records are copied from t\n"
        assert done(other, "consume", "-f", "%T ", "t") == b"1600000008000 1600000009000 "
    kafka.create_topic("one", 1)
    fewer = run(kafka, "topic", "copy", "t", "one", "--same-partitions")
    assert (fewer.exit_code, fewer.stderr) == (
        1,
        "kafkalite: topic one has no partition 1: it has 1, from 0 on; 5 records are written\n",
    )
    assert run(kafka, "topic", "copy", "t", "t").exit_code == 2
    absent = run(kafka, "topic", "copy", "missing", "c")
    assert (absent.exit_code, absent.stderr) == (1, "kafkalite: there is no topic missing\n")


def test_sums(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    even, odd = json.loads(done(kafka, "topic", "stat", "t", "-o", "json"))
    assert even.pop("batches") >= 1
    assert even == {
        "partition": 0, "topic": "t", "records": 5, "with_key": 0, "tombstones": 1, "key_bytes": 0,
        "value_bytes": 8, "largest": 2, "codecs": ["none"],
        "first": "2020-09-13T12:26:40.000+00:00", "last": "2020-09-13T12:26:48.000+00:00",
    }  # fmt: skip
    assert (odd["with_key"], odd["key_bytes"], odd["largest"]) == (5, 15, 5)
    assert done(kafka, "topic", "stat", "t", "--until", "0").split()[-1] == b"-"


def test_yaml(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    told = done(kafka, "topic", "list", "-o", "yaml").decode()
    assert told.splitlines()[:3] == ['- topic: "t"', "  partitions: 2", "  replicas: 1"]
    assert done(kafka, "topic", "list", "no*", "-o", "yaml") == b"[]\n"


# --- terminals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "shown"), [
    (b"plain \xc3\xbc", b"plain \xc3\xbc"),
    (b"a\tb\n", b"a\tb\n"),
    (b"\x1b[2J\x07", rb"\x1b[2J\x07"),
    (b"\xff\x00", rb"\xff\x00"),
    ("\u202e".encode(), rb"\u202e"),
])  # fmt: skip
def test_a_terminal_is_not_commanded(field: bytes, shown: bytes) -> None:
    assert readable(field) == shown
    record = Record(1, 2, field, field, ((field, field),))
    assert printer("%k|%s|%h", shown=readable)("t", 0, record) == b"|".join(
        [shown, shown, shown + b"=" + shown]
    )


@pytest.mark.parametrize("words", [(), ("--raw",)])
def test_a_record_on_a_terminal(kafka: EmbeddedKafka, words: tuple[str, ...]) -> None:
    done(kafka, "produce", "t", typed=b"\x1b[31mred\n")
    ours, theirs = pty.openpty()
    call = [sys.executable, "-m", "kafkalite", "consume", "-b", kafka.bootstrap_servers, "t"]
    with subprocess.Popen([*call, *words], stdout=theirs) as process:
        os.close(theirs)
        seen = os.read(ours, 100)
        assert process.wait(20) == 0
    os.close(ours)
    assert seen == (b"\x1b[31mred\r\n" if words else b"\\x1b[31mred\r\n")


def test_lengths_as_bytes() -> None:
    assert printer("%R")("t", 0, Record(1, 2, None, b"abc")) == b"\0\0\0\3"
    assert printer("%R")("t", 0, Record(1, 2, None, None)) == b"\xff" * 4


# --- schemas --------------------------------------------------------------------------------------

EVENT = {"type": "record", "name": "E", "fields": [
    {"name": "id", "type": "long"}, {"name": "raw", "type": "bytes"},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
]}  # fmt: skip


def avro(number: int, value: dict[str, Any]) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(EVENT), value)
    return struct.pack(">bi", 0, number) + written.getvalue()


def test_schemas_of_a_registry(kafka: EmbeddedKafka) -> None:
    good = avro(7, {"id": 5, "raw": b"\xff", "day": 1})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in (good, avro(8, {"id": 5, "raw": b"", "day": 1}), b"plain", good[:-1], good + b"x"):
        producer.produce("t", value, struct.pack(">bi", 0, 9) + b'{"k": 1}')
    producer.flush(10)
    with schema_registry() as registry:
        registry.has(7, EVENT)
        registry.has(9, {"type": "object"}, schemaType="JSON")
        words = ("-s", "value=avro", "-s", "key=json", "-r", registry.url)
        result = run(kafka, "consume", *words, "-J", "t")
        plain = run(kafka, "consume", *words, "-K", "|", "-n", "1", "t")
    assert result.exit_code == 1
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines[0]["payload"] == {"id": 5, "raw": {"base64": "/w=="}, "day": "1970-01-02"}
    assert [each["key"] for each in lines] == [{"k": 1}] * 5
    assert lines[2]["payload"] == "plain"
    said = result.stderr.splitlines()
    assert said[0] == "kafkalite: t-0, offset 1, value: unknown schema id 8"
    assert said[1] == "kafkalite: t-0, offset 2, value: no schema id stands before it"
    assert "offset 3, value: this is no Avro of schema 7" in said[2]
    assert "it ends before its bytes do" in said[3]
    assert plain.stdout == (
        '{"k": 1}|{"id": 5, "raw": {"base64": "/w=="}, "day": "1970-01-02"}\n'
    )


def test_schemas_of_a_registry_need_no_spark(kafka: EmbeddedKafka) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    key = struct.pack(">bi", 0, 9) + b'{"k": 1}'
    producer.produce("t", avro(7, {"id": 5, "raw": b"", "day": 1}), key)
    producer.flush(10)
    program = (
        "import sys; sys.modules['pyspark'] = None; from kafkalite.cli.main import main; main()"
    )
    with schema_registry() as registry:
        registry.has(7, EVENT)
        registry.has(9, {"type": "object"}, schemaType="JSON")
        words = ("consume", "-b", kafka.bootstrap_servers, "-s", "value=avro", "-s", "key=json",
                 "-r", registry.url, "-f", "%k %s", "t")  # fmt: skip
        done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True,
                              text=True, timeout=60, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{"k": 1} {"id": 5, "raw": "", "day": "1970-01-02"}'


def test_a_registry_that_is_not_there(kafka: EmbeddedKafka) -> None:
    done(kafka, "produce", "t", typed=avro(7, {"id": 1, "raw": b"", "day": 1}) + b"\n")
    result = run(kafka, "consume", "-s", "value=avro", "-r", "http://127.0.0.1:1", "t")
    assert result.exit_code == 1
    assert "the schema registry at http://127.0.0.1:1 did not answer" in result.stderr
    assert run(kafka, "consume", "-s", "value=avro", "t").exit_code == 2
    assert run(kafka, "consume", "-s", "value=thrift", "-r", "x", "t").exit_code == 2
    missing = run(kafka, "consume", "-s", "value=avro", "-r", "/missing", "t")
    assert (missing.exit_code, "no folder of schemas" in missing.stderr) == (1, True)


# --- top ------------------------------------------------------------------------------------------


def test_looks_at_a_cluster(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    done(kafka, "group", "reset", "g", "-t", "t", "--to", "2")
    lines = done(kafka, "top", "-n", "2", "--every", "0.2", "-o", "json").splitlines()
    first, second = map(json.loads, lines)
    assert first["topics"][0]["records_per_s"] is None
    [topic] = second["topics"]
    assert (topic["topic"], topic["records"], topic["records_per_s"]) == ("t", 10, 0.0)
    [group] = second["groups"]
    assert (group["group"], group["lag"], group["lag_per_s"]) == ("g", 6, 0.0)
    shown = done(kafka, "top", "-n", "1").decode().splitlines()
    assert "1 brokers, controller 1" in shown[0]
    assert shown[1].split()[0] == "TOPIC"


def test_ctrl_c_ends_it(kafka: EmbeddedKafka) -> None:
    call = [sys.executable, "-m", "kafkalite", "top", "-b", kafka.bootstrap_servers]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""


def test_log_dirs(kafka: EmbeddedKafka) -> None:
    filled(kafka)
    [one] = json.loads(done(kafka, "log", "dirs", "t", "-o", "json"))
    assert (one["broker"], one["partitions"], one["failure"]) == (1, 2, None)
    logs = json.loads(done(kafka, "log", "dirs", "--partitions", "t", "-o", "json"))
    assert sum(each["bytes"] for each in logs) == one["bytes"] > 0
    absent = run(kafka, "log", "dirs", "--broker", "9")
    assert (absent.exit_code, absent.stderr) == (
        1, "kafkalite: there is no broker 9: there are 1\n"
    )  # fmt: skip
