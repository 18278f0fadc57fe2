"""The console tools and those for partitions, against a broker in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from kafkalite.client.membership import assigned_ranges
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.tools.java_maps import partitions_in_map_order
from kafkalite.tools.running import main

LONG = "org.apache.kafka.common.serialization.LongDeserializer"


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    import_module("kafkalite.testing.staging")  # not first on the broker's loop: it takes a while
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """What is on standard input."""
    found = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(found))
    return found


def run(name: str, kafka: EmbeddedKafka, *words: str) -> int:
    return main([name, "--bootstrap-server", kafka.bootstrap_servers, *words])


def consume(kafka: EmbeddedKafka, *words: str) -> int:
    return run("kafka-console-consumer", kafka, "--timeout-ms", "5000", *words)


def test_lines_go_in_and_come_out(
    kafka: EmbeddedKafka, typed: io.BytesIO, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    typed.write(b"h:1\tk\tone\r\nh:2\tk\ttwo")
    typed.seek(0)
    properties = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    assert run("kafka-console-producer", kafka, "--topic", "t", "--sync", *properties) == 0
    shown = [f"--formatter-property=print.{name}=true" for name in ("headers", "key", "offset")]
    ends = ["--from-beginning", "--max-messages", "2"]
    assert consume(kafka, "--topic", "t", *ends, *shown) == 0
    wrote = capsysbinary.readouterr()
    assert wrote.out == b"Offset:0\th:1\tk\tone\nOffset:1\th:2\tk\ttwo\n"
    assert wrote.err.endswith(b"Processed a total of 2 messages\n")


@pytest.mark.parametrize(("words", "said", "code"), [
    (["--sync"], "java.util.concurrent.ExecutionException: org.apache.kafka.common.Invalid", 1),
    ([], "ERROR Error when sending message to topic t with key: null, value: 3 bytes with", 0),
])
def test_a_record_that_is_not_taken(
    words: list[str], said: str, code: int, kafka: EmbeddedKafka, typed: io.BytesIO,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kafka.create_topic("t", configs={"cleanup.policy": "compact"})
    typed.write(b"one\n")
    typed.seek(0)
    assert run("kafka-console-producer", kafka, "--topic", "t", *words) == code
    first, second = capsys.readouterr().err.splitlines()
    assert said in first
    assert "InvalidRecordException: Compacted topic cannot accept message without key" in second


def test_a_group_goes_on_where_it_stopped(
    kafka: EmbeddedKafka, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    kafka.create_topic("t", partitions=2)
    kafka.produce("t", "a", "b", partition=0)
    kafka.produce("t", "c", partition=1)
    seen = b""
    for count in ("1", "2"):
        words = ["--group", "g", "--from-beginning", "--max-messages", count]
        assert consume(kafka, "--include", "t|u", *words) == 0
        seen += capsysbinary.readouterr().out
    assert sorted(seen.split()) == [b"a", b"b", b"c"]


def test_nothing_comes_in_time(
    kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.produce("t", "a")
    assert consume(kafka, "--topic", "t", "--partition", "0", "--timeout-ms=100") == 1
    assert "Found multiple arguments for option timeout-ms" in capsys.readouterr().err
    words = ["--topic", "t", "--partition", "0", "--timeout-ms", "100"]
    assert run("kafka-console-consumer", kafka, *words) == 0
    assert capsys.readouterr().err.endswith("Processed a total of 0 messages\n")


def test_a_value_that_cannot_be_read_ends_all_or_is_skipped(
    kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.produce("t", "a", (7).to_bytes(8, "big"))
    words = ["--topic", "t", "--from-beginning", "--max-messages=2", "--value-deserializer", LONG]
    assert consume(kafka, *words) == 1
    assert "Size of data received by LongDeserializer is not 8" in capsys.readouterr().err
    assert consume(kafka, *words, "--skip-message-on-error") == 0
    assert capsys.readouterr().out == "7\n"


def test_partitions_are_shortened_measured_and_led(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.produce("t", "a", "b")
    file = tmp_path / "offsets.json"
    place = {"topic": "t", "partition": 0, "offset": 1}
    file.write_text(json.dumps({"partitions": [place]}))
    assert run("kafka-delete-records", kafka, "--offset-json-file", str(file)) == 0
    assert capsys.readouterr().out.endswith("partition: t-0\tlow_watermark: 1\n")
    assert run("kafka-log-dirs", kafka, "--describe", "--topic-list", "t") == 0
    [broker] = json.loads(capsys.readouterr().out.splitlines()[-1])["brokers"]
    [directory] = broker["logDirs"]
    assert [each["partition"] for each in directory["partitions"]] == ["t-0"]
    words = ["--election-type", "preferred", "--path-to-json-file", str(file)]
    assert run("kafka-leader-election", kafka, *words) == 0
    assert capsys.readouterr().out == "Valid replica already elected for partitions t-0\n"


@pytest.mark.parametrize("words", [
    ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"],
    ["--group", "g", "--command-property", "group.protocol=consumer"],
    ["--command-property", "auto.offset.reset=by_duration:PT1H"],
])
def test_what_only_apache_kafkas_tool_can(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t"]
    assert main(["kafka-console-consumer", *where, *words]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "is not there yet in kafkalite's tools: leave it out" in line


@pytest.mark.parametrize(("text", "said"), [
    ("{", "The input string is not a valid JSON"),
    ('{"version": 2}', "Not supported version field value 2"),
    ("{}", "Missing partitions field"),
    ("[]", "Expected JSON object, received []"),
    ('{"partitions": 3}', "Expected JSON array, received 3"),
    ('{"partitions": [{"topic": "t"}]}', "No such field exists: `partition`"),
    ('{"partitions": [{"topic": "t", "partition": "0"}]}',
     'Expected `Integer` value, received "0"'),
])  # fmt: skip
def test_a_file_that_is_not_as_it_must_be(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(text)
    words = ["--bootstrap-server", "127.0.0.1:1", "--offset-json-file", str(file)]
    assert main(["kafka-delete-records", *words]) == 1
    assert capsys.readouterr().err.splitlines()[0] == said


def test_which_partitions_one_may_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--bootstrap-server", "127.0.0.1:1", "--election-type", "Unclean"]
    for more, said in (
        (["--topic", "t"], "Missing required option(s): partition"),
        (["--all-topic-partitions", "--partition", "1"],
         "Option partition is only allowed if topic is used"),
        ([], "One and only one of the following options is required: topic, "
             "all-topic-partitions, path-to-json-file"),
    ):  # fmt: skip
        assert main(["kafka-leader-election", *words, *more]) == 1
        assert capsys.readouterr().err.splitlines()[0] == said


def test_a_type_of_election_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--bootstrap-server", "a:1", "--election-type", "any", "--all-topic-partitions"]
    assert main(["kafka-leader-election", *words]) == 1
    said = "joptsimple.ValueConversionException: Value [any] is not one of [[PREFERRED,UNCLEAN]]"
    assert said in capsys.readouterr().err


def test_ranges_of_members() -> None:
    wishes = {"b": ["t", "u"], "a": ["t"], "c": ["t"]}
    assert assigned_ranges(wishes, {"t": 5, "u": 1}) == {
        "a": {"t": [0, 1]}, "b": {"t": [2, 3], "u": [0]}, "c": {"t": [4]}
    }  # fmt: skip


def test_partitions_in_the_order_of_a_map() -> None:
    places = [("y", 0), ("x", 0), ("x", 9)]
    assert partitions_in_map_order(places) == [("x", 9), ("x", 0), ("y", 0)]
