"""A tool as a process: streams that are closed, full or read by nobody, and signals; as Apache
Kafka's tools end then."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalite.testing.embedded import EmbeddedKafka

PROGRAM = shlex.join([sys.executable, "-m", "kafkalite.tools"])
PATIENCE_S = 30
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"t": 1}) as broker:
        broker.produce("t", *(f"record {number}" for number in range(5)))
        yield broker


def shell(line: str, kafka: EmbeddedKafka) -> subprocess.CompletedProcess[bytes]:
    line = line.format(where=f"--bootstrap-server {kafka.bootstrap_servers}")
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, timeout=PATIENCE_S, check=False
    )


def test_nobody_reads(kafka: EmbeddedKafka) -> None:
    line = f"{PROGRAM} kafka-topics {{where}} --list | true; exit ${{{{PIPESTATUS[0]}}}}"
    assert (shell(line, kafka).returncode, shell(line, kafka).stderr) == (0, b"")


@pytest.mark.parametrize(("line", "code"), [
    ("kafka-topics {where} --list >&-", 0),
    ("kafka-topics {where} --list <&-", 0),
    ("kafka-topics {where} --nothing 2>&-", 1),
    pytest.param("kafka-topics {where} --list > /dev/full", 0, marks=needs_full),
    pytest.param("kafka-topics --help 2> /dev/full", 1, marks=needs_full),
    ("kafka-topics {where} --create --topic made.here >&-", 0),
])
def test_a_tool_does_its_work_whoever_reads(line: str, code: int, kafka: EmbeddedKafka) -> None:
    done = shell(f"{PROGRAM} {line}", kafka)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("answer", ["printf '\\xff\\n' | {0}", "{0} </dev/null", "{0} <&-"])
def test_no_answer_to_a_question(answer: str, kafka: EmbeddedKafka) -> None:
    done = shell(answer.format(f"{PROGRAM} kafka-acls {{where}} --remove --topic t"), kafka)
    assert done.stdout.startswith(b"Are you sure you want to delete all ACLs")
    assert b"Traceback" not in done.stderr


def test_text_and_records_come_in_their_order(kafka: EmbeddedKafka) -> None:
    words = "--topic t --partition 0 --from-beginning --max-messages 1"
    words += " --property print.partition=true"
    lines = shell(f"{PROGRAM} kafka-console-consumer {{where}} {words}", kafka).stdout.splitlines()
    assert lines[0].startswith(b"Option --property is deprecated")
    assert lines[1:] == [b"Partition:0\trecord 0"]


@needs_full
def test_a_consumer_ends_when_its_output_is_lost(kafka: EmbeddedKafka) -> None:
    line = f"{PROGRAM} kafka-console-consumer {{where}} --topic t --from-beginning > /dev/full"
    done = shell(line, kafka)
    assert done.returncode == 0
    assert b"Unable to write to standard out, closing consumer." in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_consumer_that_is_ended_tells_how_far_it_came_and_commits(
    number: signal.Signals, kafka: EmbeddedKafka
) -> None:
    group = f"ended by {number.name}"
    consumer = subprocess.Popen(
        [
            sys.executable, "-m", "kafkalite.tools", "kafka-console-consumer", "--topic", "t",
            "--bootstrap-server", kafka.bootstrap_servers, "--group", group, "--from-beginning",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert consumer.stdout is not None
    assert [consumer.stdout.readline() for _ in range(5)][-1] == b"record 4\n"
    consumer.send_signal(number)
    time.sleep(0.01)
    consumer.send_signal(number)  # as `timeout` does, to the process and to its group
    _, said = consumer.communicate(timeout=PATIENCE_S)
    assert consumer.returncode == 128 + number
    assert said.decode().splitlines()[-1] == "Processed a total of 5 messages"
    kafka.assert_lag(group, 0)
    kafka.wait_for_group(group, state="Empty")


def test_a_producer_that_is_ended_has_written_what_was_typed(kafka: EmbeddedKafka) -> None:
    where = f"--bootstrap-server {kafka.bootstrap_servers} --topic typed"
    with subprocess.Popen(
        shlex.split(f"{PROGRAM} kafka-console-producer {where}"), stdin=subprocess.PIPE
    ) as producer:
        assert producer.stdin is not None
        producer.stdin.write(b"one\n")
        producer.stdin.flush()
        kafka.records("typed").one()
        producer.send_signal(signal.SIGTERM)
        assert producer.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_words_and_output_in_any_encoding(kafka: EmbeddedKafka) -> None:
    for line in (
        f"{PROGRAM} kafka-topics {{where}} --create --topic $'\\xff\\xfe'",
        f"PYTHONIOENCODING=ascii {PROGRAM} kafka-topics {{where}} --create --topic ünï",
        f"{PROGRAM} kafka-topics {{where}} --list --topic '[[a]]'",
    ):
        done = shell(line, kafka)
        assert b"Traceback" not in done.stderr
        assert b"Warning" not in done.stderr
    assert b"'?n?' contains one or more characters" in shell(
        f"PYTHONIOENCODING=ascii {PROGRAM} kafka-topics {{where}} --create --topic ünï", kafka
    ).stdout
