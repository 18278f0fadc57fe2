"""`kafkalite serve --metrics` as a process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

START_SECONDS = 30


def serve(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kafkalite", "serve", "--memory", "--listen", "127.0.0.1:0"]
    return subprocess.Popen(
        [*command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def port_in(path: Path) -> int:
    until = time.monotonic() + START_SECONDS
    while not path.exists():
        assert time.monotonic() < until, "it did not start"
        time.sleep(0.02)
    return int(path.read_text())


def test_numbers_are_told_until_it_stops(tmp_path: Path) -> None:
    for more in ((), ("--control", "127.0.0.1:0")):
        ports = tmp_path / f"metrics{len(more)}", tmp_path / f"broker{len(more)}"
        process = serve(
            "--metrics", "127.0.0.1:0", "--metrics-port-file", str(ports[0]),
            "--port-file", str(ports[1]), *more,
        )  # fmt: skip
        try:
            assert port_in(ports[1]) > 0
            url = f"http://127.0.0.1:{port_in(ports[0])}/metrics"
            with urllib.request.urlopen(url, timeout=10) as answer:
                assert b"kafka_server_kafkaserver_brokerstate 3.0" in answer.read()
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=START_SECONDS)
        assert (process.returncode, "Traceback" in errors) == (0, False), errors


def test_an_address_that_cannot_be_had() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process = serve("--metrics", address)
        _, errors = process.communicate(timeout=START_SECONDS)
    assert process.returncode == 1
    assert f"--metrics {address}" in errors
    assert "choose another port" in errors
    process = serve("--metrics-port-file", "x")
    assert "needs --metrics HOST:PORT" in process.communicate(timeout=START_SECONDS)[1]
    assert process.returncode == 2
