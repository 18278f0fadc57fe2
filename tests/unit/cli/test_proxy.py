"""`kafkalite proxy` as a process: what it prints and what it saves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.testing.comparison.wire import Wire, request_frame
from kafkalite.testing.embedded import EmbeddedKafka

DEADLINE_S = 30


@contextmanager
def proxied(folder: Path, *options: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port of a proxy before a broker, and its process; it has ended when this ends."""
    port_file = folder / "port"
    with EmbeddedKafka() as kafka:
        call = [sys.executable, "-m", "kafkalite", "proxy", "--to", kafka.bootstrap_servers]
        call += ["--listen", "127.0.0.1:0", "--port-file", str(port_file), *options]
        with (folder / "printed").open("wb") as printed:
            process = subprocess.Popen(call, stdout=printed, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + DEADLINE_S
            while not port_file.exists():
                assert time.monotonic() < deadline, "the proxy does not start"
                time.sleep(0.02)
            yield int(port_file.read_text()), process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE_S)


def ask(port: int) -> None:
    wire = Wire("127.0.0.1", port)
    wire.send(request_frame(MetadataRequest(topics=[]), 9, 5, "me"))
    assert isinstance(wire.receive(DEADLINE_S), bytes)
    wire.close()


def test_printing(tmp_path: Path) -> None:
    with proxied(tmp_path) as (port, process):
        ask(port)
    said = (tmp_path / "printed").read_text(encoding="utf-8")
    assert process.returncode == 0
    assert "→ Metadata v9" in said
    assert "← Metadata v9" in said
    assert "    allow_auto_topic_creation: true" in said


def test_saving(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    with proxied(tmp_path, "--save", str(file)) as (port, _):
        ask(port)
    asked, answered = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert (asked["kind"], asked["api"], asked["version"]) == ("request", "Metadata", 9)
    assert (asked["client_id"], asked["correlation_id"]) == ("me", 5)
    assert asked["fields"]["topics"] == []
    assert answered["fields"]["brokers"][0]["port"] != port


@pytest.mark.parametrize("address", ["nowhere", ":9092", "host:port", "host:70000"])
def test_wrong_address_is_refused(address: str) -> None:
    done = CliRunner().invoke(main, ["proxy", "--to", address])
    assert done.exit_code == 2
    assert "HOST:PORT" in done.output
