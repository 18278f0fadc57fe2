"""What docs/proof.md shows works as it stands there: record, run, replay."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
