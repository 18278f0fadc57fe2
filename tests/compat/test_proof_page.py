"""What docs/proof.md shows works as it stands there: record, run, replay."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kafkalite.client.wire import Wire, request_frame
from kafkalite.protocol.messages import AlterConfigsRequest
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.brokers import Broker

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
TIMEOUT_S = 60


def block(name: str) -> str:
    """The code block that is marked with this name."""
    found = re.search(rf"```\w+ {name}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"{PAGE.name} has no block {name}"
    return found[1]


def command(name: str, places: dict[str, str]) -> list[str]:
    """A block's command with the addresses of this test, as this Python's own program."""
    text = block(name)
    for shown, actual in places.items():
        text = text.replace(shown, actual)
    program, *words = shlex.split(text)
    return [sys.executable, "-m", program, *words]


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + TIMEOUT_S
    while not path.exists():
        assert time.monotonic() < deadline, "the proxy does not start"
        assert process.poll() is None, "the proxy has ended"
        time.sleep(0.02)
    return path.read_text()


@pytest.fixture
def trace(broker: Broker, tmp_path: Path) -> Path:
    """Of the page's application, through the page's proxy."""
    places = {"localhost:9092": broker.bootstrap, "localhost:9192": "127.0.0.1:0"}
    call = [*command("record", places), "--port-file", str(tmp_path / "port")]
    with (tmp_path / "said").open("wb") as said:
        proxy = subprocess.Popen(call, cwd=tmp_path, stderr=said)
    try:
        port = wait_for(tmp_path / "port", proxy).strip()
        topic = f"orders-{os.getpid()}-{broker.kind[0]}"
        program = block("application").replace("localhost:9192", f"127.0.0.1:{port}")
        program = program.replace('"orders"', f'"{topic}"').replace('"clerks"', f'"of-{topic}"')
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False,
            timeout=TIMEOUT_S,
        )
        assert "10 orders" in done.stdout, done.stderr[-2000:]
    finally:
        proxy.send_signal(signal.SIGINT)
        proxy.wait(TIMEOUT_S)
    return tmp_path / "trace.jsonl"


def test_the_table_of_keys(trace: Path) -> None:
    """Each key of a line is in it, and no line lacks one without which another stands."""
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = [name.strip("` ") for row in rows for name in row.split(",")]
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    always = set(told) - {"fields", "frame", "reason"}
    assert len(lines) > 20
    assert {key for line in lines for key in line} | {"frame", "reason"} == set(told)
    assert all(always <= line.keys() for line in lines)


@pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq here")
def test_the_question_about_errors(trace: Path) -> None:
    done = subprocess.run(
        shlex.split(block("errors")), cwd=trace.parent, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    wrong = [line for line in lines if line["kind"] == "response" and set(errors(line)) - {"NONE"}]
    assert [json.loads(line) for line in done.stdout.splitlines()] == wrong
    assert 0 < len(wrong) < len(lines) / 2


def errors(value: Any) -> Iterator[str]:
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if name == "error_code":
            yield inner
        elif isinstance(inner, dict | list):
            yield from errors(inner)


def test_the_recorder() -> None:
    """With an application that asks to change a setting, and with one that does not."""
    with EmbeddedKafka() as kafka:
        text = block("recorder").replace("localhost:9092", kafka.bootstrap_servers)

        def listing(servers: str) -> None:
            AdminClient({"bootstrap.servers": servers}).list_topics(timeout=10)

        def altering(servers: str) -> None:
            host, _, port = servers.rpartition(":")
            with closing(Wire(host, int(port))) as wire:
                wire.send(request_frame(AlterConfigsRequest(resources=[]), 1, 1, "old"))
                assert isinstance(wire.receive(TIMEOUT_S), bytes)

        exec(text, {"run_my_application": listing})
        with pytest.raises(AssertionError):
            exec(text, {"run_my_application": altering})


def test_the_page(trace: Path) -> None:
    with EmbeddedKafka() as against, EmbeddedKafka() as oracle:
        places = {
            "localhost:9092": against.bootstrap_servers,
            "localhost:9093": oracle.bootstrap_servers,
        }
        done = subprocess.run(
            command("replay", places), cwd=trace.parent, capture_output=True, text=True,
            check=False, timeout=TIMEOUT_S,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "; 0 answered differently;" in done.stdout
