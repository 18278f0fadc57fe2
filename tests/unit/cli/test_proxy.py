"""`kafkalite proxy` as a process: what it prints and saves, and what its exit code says."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.client.wire import NoReply, Wire, request_frame
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.testing.embedded import EmbeddedKafka

DEADLINE_S = 30
ALL, NOT_ALL = 0, 1
OLDER = "an older trace\n"


@contextmanager
def proxying(
    to: str, folder: Path, *options: str, file_bytes: int | None = None
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port of a proxy and its process; it has ended when this ends."""
    port_file = folder / "port"
    call = [sys.executable, "-m", "kafkalite", "proxy", "--to", to]
    call += ["--listen", "127.0.0.1:0", "--port-file", str(port_file), *options]
    with (folder / "printed").open("wb") as printed:
        process = subprocess.Popen(call, stdout=printed, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not port_file.exists():
            assert time.monotonic() < deadline, "the proxy does not start"
            time.sleep(0.02)
        if file_bytes is not None:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        yield int(port_file.read_text()), process
    finally:
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=DEADLINE_S)
        (folder / "told").write_bytes(told)


@contextmanager
def proxied(
    folder: Path, *options: str, file_bytes: int | None = None
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    with (
        EmbeddedKafka() as kafka,
        proxying(kafka.bootstrap_servers, folder, *options, file_bytes=file_bytes) as proxy,
    ):
        yield proxy


def ask(port: int) -> None:
    with closing(Wire("127.0.0.1", port)) as wire:
        wire.send(request_frame(MetadataRequest(topics=[]), 9, 5, "me"))
        assert isinstance(wire.receive(DEADLINE_S), bytes)


def told(folder: Path) -> str:
    return (folder / "told").read_text(encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text(OLDER)
    return path


def test_printing(tmp_path: Path) -> None:
    with proxied(tmp_path) as (port, process):
        ask(port)
    said = (tmp_path / "printed").read_text(encoding="utf-8")
    assert process.returncode == ALL
    assert "→ Metadata v9" in said
    assert "← Metadata v9" in said
    assert "    allow_auto_topic_creation: true" in said


def test_saving(tmp_path: Path, file: Path) -> None:
    with proxied(tmp_path, "--save", str(file)) as (port, process):
        ask(port)
    asked, answered = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert (asked["kind"], asked["api"], asked["version"]) == ("request", "Metadata", 9)
    assert (asked["client_id"], asked["correlation_id"]) == ("me", 5)
    assert asked["fields"]["topics"] == []
    assert answered["fields"]["brokers"][0]["port"] != port
    assert process.returncode == ALL
    assert f"2 requests and responses over 1 connections saved to {file}" in told(tmp_path)


def test_a_full_disk_ends_the_trace_and_nothing_else(tmp_path: Path, file: Path) -> None:
    with proxied(tmp_path, "--save", str(file), file_bytes=1000) as (port, process):
        for _ in range(5):
            ask(port)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert all(json.loads(each)["api"] == "Metadata" for each in lines)
    assert 0 < len(lines) < 10
    assert process.returncode == NOT_ALL
    assert told(tmp_path).count("File too large") == 1
    assert f"{len(lines)} saved to {file}, {10 - len(lines)} not" in told(tmp_path)


def test_a_disk_without_room_for_a_line_keeps_the_older_trace(tmp_path: Path, file: Path) -> None:
    with proxied(tmp_path, "--save", str(file), file_bytes=20) as (port, process):
        ask(port)
    assert file.read_text() == OLDER
    assert process.returncode == NOT_ALL
    assert f"0 saved to {file}, 2 not" in told(tmp_path)


def test_an_older_trace_stays_when_nobody_came(tmp_path: Path, file: Path) -> None:
    with proxied(tmp_path, "--save", str(file)) as (_, process):
        pass
    assert file.read_text() == OLDER
    assert process.returncode == ALL
    assert f"{file} is as it was" in told(tmp_path)


def test_an_older_trace_stays_when_the_port_is_taken(tmp_path: Path, file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        call = ["proxy", "--to", "127.0.0.1:1", "--listen", listen, "--save", str(file)]
        done = CliRunner().invoke(main, call)
    assert done.exit_code == NOT_ALL
    assert "cannot listen" in done.output
    assert file.read_text() == OLDER


def test_a_broker_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    with proxying("127.0.0.1:1", tmp_path) as (port, process):
        for _ in range(3):
            with closing(Wire("127.0.0.1", port)) as wire:
                wire.send(request_frame(MetadataRequest(topics=[]), 9, 5, "me"))
                assert wire.receive(DEADLINE_S) == NoReply.CLOSED
    assert process.returncode == ALL
    assert told(tmp_path).count("broker 127.0.0.1:1 cannot be reached") == 1


def test_more_clients_than_files_may_be_open_are_told_of_once_and_then_served(
    tmp_path: Path,
) -> None:
    with proxied(tmp_path) as (port, process):
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (40, 40))
        with ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            time.sleep(0.2)
        ask(port)
    assert process.returncode == ALL
    # Of clients, and of the broker, which may be there between two of them; not of each of sixty.
    assert 1 <= told(tmp_path).count("ulimit -n") <= 6


def test_clients_are_served_when_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    with EmbeddedKafka() as kafka:
        call = [sys.executable, "-m", "kafkalite", "proxy", "--to", kafka.bootstrap_servers]
        call += ["--listen", "127.0.0.1:0", "--port-file", str(tmp_path / "port")]
        reading, writing = os.pipe()
        with (tmp_path / "told").open("wb") as file:
            process = subprocess.Popen(call, stdout=writing, stderr=file)
        os.close(reading)
        os.close(writing)
        while not (tmp_path / "port").exists():
            time.sleep(0.02)
        for _ in range(3):
            ask(int((tmp_path / "port").read_text()))
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == NOT_ALL
    assert told(tmp_path).count("nobody reads what is printed") == 1
    assert "0 printed, 6 not" in told(tmp_path)


@pytest.mark.parametrize("address", ["nowhere", ":9092", "host:port", "host:70000"])
def test_wrong_address_is_refused(address: str) -> None:
    done = CliRunner().invoke(main, ["proxy", "--to", address])
    assert done.exit_code == 2
    assert "HOST:PORT" in done.output


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    call = ["proxy", "--to", "127.0.0.1:1", "--save", str(tmp_path / "nowhere" / "trace")]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 2
    assert "there is no folder" in done.output
