"""`kafkalite serve --log-format json`: every line on standard error is one of JSON."""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkalite.cli._log_lines import JsonLines
from kafkalite.cli.main import main

START_SECONDS = 30
SERVE = [sys.executable, "-m", "kafkalite", "serve", "--log-format", "json"]
FIELDS = ["time", "level", "logger", "message"]


def lines(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for each in found:
        assert list(each)[:4] == FIELDS
        assert datetime.fromisoformat(each["time"]).tzname() == "UTC"
    return found


def test_a_broker_says_all_in_json(tmp_path: Path) -> None:
    port = tmp_path / "port"
    process = subprocess.Popen(
        [*SERVE, "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data"),
         "--port-file", str(port), "--override", "zookeeper.connect=nobody:2181"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while not port.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=START_SECONDS)
    finally:
        process.kill()
        process.wait()
    found = lines(said)
    assert process.returncode == 0
    messages = [each["message"] for each in found]
    assert any("zookeeper.connect has no effect" in each for each in messages)
    assert "kafkalite is stopping; once more to stop at once" in messages
    assert {each["level"] for each in found} <= {"INFO", "WARNING"}


def test_why_it_cannot_start_is_json_too(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = subprocess.run(
            [*SERVE, "--memory", "--listen", f"127.0.0.1:{taken.getsockname()[1]}"],
            capture_output=True, text=True, timeout=START_SECONDS, check=False,
        )  # fmt: skip
    found = lines(done.stderr)
    assert done.returncode == 1
    assert "cannot start" in found[-1]["message"]
    assert "choose another --listen" in found[-1]["message"]


def test_whatever_is_in_a_message_it_is_one_line() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        failed = sys.exc_info()
    record = logging.LogRecord(
        "a.b", logging.ERROR, "here", 1, "of %s", ("\x1b[2J\n\u2028\ud800",), failed
    )
    text = JsonLines().format(record)
    assert text.isascii()
    assert text.isprintable()
    [line] = lines(text)
    assert (line["level"], line["logger"], line["message"]) == (
        "ERROR", "a.b", "of \x1b[2J\n\u2028\ud800"
    )  # fmt: skip
    assert line["exception"].endswith("ValueError: two\nlines")


@pytest.mark.parametrize("words", [("--brokers", "3"), ("--control", "127.0.0.1:0")])
def test_what_it_does_not_go_with_is_said(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, ["serve", "--log-format", "json", *words])
    assert result.exit_code == 2
    assert "--log-format json goes with no" in result.stderr
