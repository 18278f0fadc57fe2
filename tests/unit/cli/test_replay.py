"""`kafkalite replay`: agreement of brokers in this process on an application's trace."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkalite.cli.main import main
from kafkalite.client.wire import Wire, request_frame
from kafkalite.protocol.messages import (
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    ProduceRequest,
)
from kafkalite.testing.comparison import reaching
from kafkalite.testing.comparison.replaying import Exchange, Replay
from kafkalite.testing.comparison.side import Side
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.recording.recorder import Recorder
from kafkalite.testing.recording.trace import Said, to_json

COUNT = 3
POLL_S, POLLS = 0.5, 40
CLUSTERS = 8
ALIKE, DIFFERENT, NOT_COMPARED = 0, 1, 3


def application(bootstrap_servers: str) -> None:
    """Writes, reads in a group, commits."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("orders", f"order {number}")
        producer.flush(10)
    consumer = Consumer({
        "bootstrap.servers": bootstrap_servers, "group.id": "clerks",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })
    consumer.subscribe(["orders"])
    found = 0
    for _ in range(POLLS):
        found += consumer.poll(POLL_S) is not None
        if found == COUNT:
            break
    assert found == COUNT
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a broker where ids, offsets and generations are not those of a fresh one."""
    with EmbeddedKafka() as kafka:
        application(kafka.bootstrap_servers)
        with Recorder(kafka.bootstrap_servers) as recorder:
            application(recorder.bootstrap_servers)
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    path.write_text("".join(f"{to_json(each)}\n" for each in recorder.said), encoding="utf-8")
    return path


@pytest.fixture
def oracle() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


def replay(trace: Path, against: EmbeddedKafka, oracle: EmbeddedKafka) -> Result:
    addresses = ["--against", against.bootstrap_servers, "--oracle", oracle.bootstrap_servers]
    return CliRunner().invoke(main, ["replay", str(trace), *addresses])


def counts(done: Result) -> list[int]:
    """Of requests: all, compared, only sent, left out."""
    found = re.search(
        r"(\d+) requests: (\d+) compared, (\d+) only sent, (\d+) left out", done.output
    )
    assert found is not None, done.output
    return [int(each) for each in found.groups()]


def positions(kafka: EmbeddedKafka) -> tuple[int, int]:
    """The end of the topic, and what the group has committed."""
    where = TopicPartition("orders", 0)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "clerks"})
    _, end = consumer.get_watermark_offsets(where, timeout=10)
    [committed] = consumer.committed([where], timeout=10)
    consumer.close()
    return end, committed.offset


def test_brokers_that_agree(trace: Path, oracle: EmbeddedKafka) -> None:
    with EmbeddedKafka() as against:
        done = replay(trace, against, oracle)
        end, committed = positions(against)
    assert done.exit_code == ALIKE, done.output
    assert " 0 answered differently" in done.output
    assert sum(counts(done)[1:]) == counts(done)[0] > counts(done)[1] / 2 > 0
    assert (end, committed) == (COUNT, COUNT), "what was recorded further on happens at the start"


def test_broker_that_differs(trace: Path, oracle: EmbeddedKafka) -> None:
    with EmbeddedKafka(settings={"log.message.timestamp.type": "LogAppendTime"}) as against:
        done = replay(trace, against, oracle)
    assert done.exit_code == DIFFERENT
    assert "log_append_time_ms" in done.output


def test_allowed_differences_are_shown_with_their_reasons(
    trace: Path, tmp_path: Path, oracle: EmbeddedKafka
) -> None:
    """The brokers' metadata ends at different offsets, which ApiVersions tells."""
    rows = [each for each in lines_of(trace) if each["api"] == "ApiVersions"]
    with EmbeddedKafka(topics=["more"]) as against:
        addresses = ["--against", against.bootstrap_servers, "--oracle", oracle.bootstrap_servers]
        call = ["replay", str(written(tmp_path, rows)), "--all", *addresses]
        done = CliRunner().invoke(main, call)
    assert done.exit_code == ALIKE, done.output
    allowed = re.search(r"; (\d+) differences are allowed", done.output)
    assert allowed is not None
    assert done.output.count("    allowed: ") == int(allowed[1]) > 0


def test_a_topic_that_only_one_of_them_has_is_a_difference(
    tmp_path: Path, oracle: EmbeddedKafka
) -> None:
    with EmbeddedKafka() as recorded, Recorder(recorded.bootstrap_servers) as recorder:
        ask(recorder.proxy.port, (MetadataRequest(topics=None), 9))
    assert [each.api for each in recorder.said] == ["Metadata"] * 2
    path = saved(tmp_path, recorder.said)
    with EmbeddedKafka(topics=["more"]) as against:
        done = replay(path, against, oracle)
    assert done.exit_code == DIFFERENT, done.output
    assert "Metadata v9 topics[" in done.output
    assert "'name': 'more'" in done.output


def test_the_order_of_the_trace_is_kept_over_all_its_connections(
    trace: Path, monkeypatch: pytest.MonkeyPatch, oracle: EmbeddedKafka
) -> None:
    asked = [(each["connection"], each["api"]) for each in lines_of(trace)
             if each["kind"] == "request"]
    assert len({connection for connection, _ in asked}) > 2
    sent: list[tuple[int, tuple[int, str]]] = []
    send = Side.send

    def noted(self: Side, request: Any, version: int, connection: int = 0) -> None:
        if connection > 0:
            sent.append((self.port, (connection, request.SPEC.api.name)))
        send(self, request, version, connection)

    monkeypatch.setattr(Side, "send", noted)
    with EmbeddedKafka() as against:
        assert replay(trace, against, oracle).exit_code == ALIKE
        for kafka in (against, oracle):
            assert [what for port, what in sent if port == kafka.port] == asked


def ask(port: int, *asked: tuple[Any, int]) -> None:
    """Sends these on one connection, all with the same correlation id, until one is answered."""
    with closing(Wire("127.0.0.1", port)) as wire:
        for request, version in asked:
            wire.send(request_frame(request, version, 1, "me"))
        assert isinstance(wire.receive(10), bytes)


def saved(folder: Path, said: list[Said]) -> Path:
    path = folder / "trace.jsonl"
    path.write_text("".join(f"{to_json(each)}\n" for each in said), encoding="utf-8")
    return path


def test_a_secret_setting_is_not_set_to_what_stands_for_it(
    tmp_path: Path, oracle: EmbeddedKafka
) -> None:
    kind = IncrementalAlterConfigsRequest
    config = kind.Config(name="sasl.jaas.config", value="hunter2")
    resource = kind.Resource(resource_type=4, resource_name="1", configs=[config])
    with EmbeddedKafka() as recorded, Recorder(recorded.bootstrap_servers) as recorder:
        ask(recorder.proxy.port, (kind(resources=[resource]), 1))
    assert all("hunter2" not in to_json(each) for each in recorder.said)
    with EmbeddedKafka() as against:
        done = replay(saved(tmp_path, recorder.said), against, oracle)
    assert counts(done) == [1, 0, 0, 1]


def recorded_of_a_cluster() -> list[Said]:
    """Of three brokers, until chance has the client ask more than one of them."""
    for _ in range(CLUSTERS):
        with EmbeddedKafka(brokers=3) as kafka, Recorder(f"127.0.0.1:{kafka.port}") as recorder:
            application(recorder.bootstrap_servers)
        if len({each.broker for each in recorder.said}) > 1:
            break
    return list(recorder.said)


def test_trace_of_a_cluster(oracle: EmbeddedKafka) -> None:
    said = recorded_of_a_cluster()
    with EmbeddedKafka() as against:
        ours, theirs = (Side("127.0.0.1", each.port) for each in (against, oracle))
        with closing(ours), closing(theirs):
            exchanges = list(Replay(ours, theirs, said).run())
    assert [str(one) for each in exchanges for one in each.differences] == []
    assert len({each.asked.broker for each in exchanges}) > 1


# --- what cannot be compared ----------------------------------------------------------------------


def is_one_sentence(done: Result) -> bool:
    """Behind the counts: an error of one line, and no traceback."""
    *_, last = done.output.splitlines()
    return last.startswith("Error: ") and isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("content", [b"{}\n", b"\xff\n", b"GET / HTTP/1.1\r\n", b"[1, 2\n"])
def test_a_file_that_is_no_trace(tmp_path: Path, oracle: EmbeddedKafka, content: bytes) -> None:
    path = tmp_path / "no-trace.jsonl"
    path.write_bytes(content)
    done = replay(path, oracle, oracle)
    assert done.exit_code == NOT_COMPARED
    assert "line 1" in done.output
    assert is_one_sentence(done)


def lines_of(trace: Path) -> list[dict]:
    return [json.loads(line) for line in trace.read_text(encoding="utf-8").split("\n") if line]


def written(folder: Path, rows: list[dict]) -> Path:
    path = folder / "changed.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    return path


UNREAD = {"api": None, "version": None, "frame": "AAAA", "reason": "no request"}


@pytest.mark.parametrize(
    ("kept", "expected", "reason"),
    [
        ("nothing", [0, 0, 0, 0], "nothing was compared"),
        ("answers", [0, 0, 0, 0], "nothing was compared"),
        ("requests", [3, 0, 3, 0], "3 that has no answer in the trace"),
        ("unread", [3, 0, 0, 3], "3 that could not be read when it was recorded"),
    ],
)
def test_a_trace_in_which_nothing_can_be_compared(
    trace: Path, tmp_path: Path, oracle: EmbeddedKafka, kept: str, expected: list[int], reason: str
) -> None:
    rows = [each for each in lines_of(trace) if each["api"] in ("ApiVersions", "Metadata")]
    asked = [each for each in rows if each["kind"] == "request"][:3]
    rows = {
        "nothing": [],
        "answers": [each for each in rows if each["kind"] == "response"],
        "requests": asked,
        "unread": [{name: each[name] for name in each if name != "fields"} | UNREAD
                   for each in asked],
    }[kept]  # fmt: skip
    done = replay(written(tmp_path, rows), oracle, oracle)
    assert done.exit_code == NOT_COMPARED, done.output
    assert counts(done) == expected
    assert reason in done.output
    assert isinstance(done.exception, SystemExit)


def test_an_answer_that_is_missing_in_the_trace_does_not_shift_the_others(
    trace: Path, tmp_path: Path, oracle: EmbeddedKafka
) -> None:
    rows = lines_of(trace)
    rows.remove(next(each for each in rows if each["kind"] == "response"))
    assert rows[0]["api"] == "ApiVersions"
    with EmbeddedKafka() as against:
        done = replay(written(tmp_path, rows), against, oracle)
    assert done.exit_code == ALIKE, done.output
    assert counts(done)[2] == counts(replay(trace, oracle, oracle))[2] + 1


def test_text_without_bytes_is_left_out(
    trace: Path, tmp_path: Path, oracle: EmbeddedKafka
) -> None:
    rows = lines_of(trace)
    asked = next(
        each for each in rows if each["api"] == "ApiVersions" and each["kind"] == "request"
    )
    asked["fields"]["client_software_name"] = "half a \ud83d pair"
    with EmbeddedKafka() as against:
        done = replay(written(tmp_path, rows), against, oracle)
    assert done.exit_code == ALIKE, done.output
    assert "left out: 1 that cannot be put on the wire" in done.output


@contextmanager
def answering(answer: bytes, needs: bytes = b"") -> Iterator[str]:
    """The address of a server that answers so when it has heard that, and closes then."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                taken, _ = listening.accept()
                with taken:
                    heard = b""
                    while needs not in heard or not heard:
                        heard += taken.recv(1000) or needs
                    taken.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    ("answer", "needs", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", "speaks HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\n", "speaks HTTP"),
        (b"\x15\x03\x03\0\2\2\x46", b"", "speaks TLS"),
        (b"-ERR unknown command\r\n", b"", "another protocol"),
        (b"", b"", "does not answer as a Kafka broker"),
        (b"\0\0\0\2\0\0", b"", "another protocol"),
    ],
)
def test_what_is_no_broker_is_told(
    trace: Path, oracle: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, answer: bytes,
    needs: bytes, reason: str,
) -> None:
    monkeypatch.setattr(reaching, "PATIENCE_S", 0.1)
    with answering(answer, needs) as address:
        call = ["replay", str(trace), "--against", oracle.bootstrap_servers, "--oracle", address]
        done = CliRunner().invoke(main, call)
    assert done.exit_code == NOT_COMPARED
    assert f"{address} " in done.output
    assert reason in done.output
    assert is_one_sentence(done)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no-such-host.invalid:9092"])
def test_a_broker_that_is_not_there(trace: Path, oracle: EmbeddedKafka, address: str) -> None:
    call = ["replay", str(trace), "--against", address, "--oracle", oracle.bootstrap_servers]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == NOT_COMPARED
    assert f"{address} cannot be reached" in done.output
    assert is_one_sentence(done)


def test_a_broker_that_goes_away_ends_the_comparison(
    trace: Path, oracle: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedKafka() as against:
        compare, compared = Replay._compare, []

        def compare_and_stop(self: Replay, exchange: Exchange) -> None:
            compare(self, exchange)
            compared.append(exchange)
            if len(compared) == 3:
                against.stop()

        monkeypatch.setattr(Replay, "_compare", compare_and_stop)
        done = replay(trace, against, oracle)
    assert done.exit_code == NOT_COMPARED, done.output
    assert "not come to" in done.output
    assert "the comparison ended" in done.output
    assert is_one_sentence(done)


def test_an_interruption_is_no_difference(
    trace: Path, oracle: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Replay, exchange: Exchange) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Replay, "_compare", interrupted)
    done = replay(trace, oracle, oracle)
    assert done.exit_code == NOT_COMPARED
    assert "interrupted" in done.output


def test_an_interruption_before_anything_was_sent_is_no_difference(
    trace: Path, oracle: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kafkalite.cli.replay.expect_broker", interrupted)
    done = replay(trace, oracle, oracle)
    assert done.exit_code == NOT_COMPARED
    assert is_one_sentence(done)


def test_a_mistake_of_ours_is_no_difference(
    trace: Path, oracle: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Replay, exchange: Exchange) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Replay, "_compare", failing)
    done = replay(trace, oracle, oracle)
    assert done.exit_code == NOT_COMPARED
    assert "not come to" in done.output
    assert "by a mistake of kafkalite's" in done.output


def test_what_is_never_answered_takes_nobodys_answer(tmp_path: Path, oracle: EmbeddedKafka) -> None:
    """A client may give all its requests the same correlation id."""
    with Recorder(oracle.bootstrap_servers) as recorder:
        unanswered = ProduceRequest(acks=0, timeout_ms=1000)
        ask(recorder.proxy.port, (unanswered, 7), (MetadataRequest(topics=[]), 9))
    done = replay(saved(tmp_path, recorder.said), oracle, oracle)
    assert done.exit_code == ALIKE, done.output
    assert counts(done) == [2, 1, 1, 0]


ANY_PLAIN = [None, -1, 2**70, 0.5, "", "x", [], [5], {}, {"x": 5}, True]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_trace_with_anything_in_it_is_compared_or_told(
    trace: Path, tmp_path: Path, oracle: EmbeddedKafka, data: st.DataObject
) -> None:
    rows = [each for each in lines_of(trace) if each["api"] in ("Metadata", "FindCoordinator")][:4]
    places = list(places_in(rows))
    holder, name = data.draw(st.sampled_from(places))
    holder[name] = data.draw(st.sampled_from(ANY_PLAIN))
    done = replay(written(tmp_path, rows), oracle, oracle)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    assert "mistake" not in done.output
    if done.exit_code == NOT_COMPARED:
        assert is_one_sentence(done) or "nothing was compared" in done.output
    else:
        assert sum(counts(done)[1:]) == counts(done)[0]


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    for name, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, name
        if isinstance(inner, dict | list):
            yield from places_in(inner)


@pytest.mark.parametrize(("how", "expected"), [("> /dev/full", ALIKE), ("| true", ALIKE)])
def test_output_that_nobody_gets_does_not_change_what_was_found(
    trace: Path, oracle: EmbeddedKafka, how: str, expected: int
) -> None:
    with EmbeddedKafka() as against:
        call = f"{sys.executable} -m kafkalite replay {trace} --against {against.bootstrap_servers}"
        call = f"({call} --oracle {oracle.bootstrap_servers}; echo code $? >&2) {how}"
        done = subprocess.run(
            ["sh", "-c", call], capture_output=True, text=True, check=False, timeout=60
        )
    assert f"code {expected}\n" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def test_the_exit_codes_are_in_the_help() -> None:
    for name in ("replay", "proxy"):
        text = CliRunner().invoke(main, [name, "--help"]).output
        assert "Exit code 0" in text
