"""`kafkalite serve` as a process: what it prints, how it stops, what keeps it from starting."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkalite.cli._properties import topic
from kafkalite.config import InvalidSetting

START_SECONDS = 30


def command(folder: Path, *arguments: str) -> list[str]:
    return [
        sys.executable, "-m", "kafkalite", "serve", "--data-dir", str(folder / "data"),
        "--port-file", str(folder / "port"), *arguments,
    ]


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    call = command(folder, "--listen", "127.0.0.1:0", *arguments)
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (folder / "port").exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process, int((folder / "port").read_text())
    finally:
        process.kill()
        process.communicate()


def test_it_says_where_it_is_and_stops_when_told(tmp_path: Path) -> None:
    with serving(tmp_path, "--topic", "orders:3") as (process, port):
        socket.create_connection(("127.0.0.1", port), 5).close()
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        said = process.stdout.read() if process.stdout else ""
        assert process.wait(20) == 0
        assert time.monotonic() - begun < 5
    assert f"PLAINTEXT://localhost:{port}" in said
    assert "[KafkaServer id=1] started" in said
    assert str(tmp_path / "data") in said
    assert (tmp_path / "data" / "orders-2").is_dir()
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def refusal(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        command(folder, *arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_directory_in_use_is_refused_with_the_process(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        said = refusal(tmp_path, "--listen", "127.0.0.1:0")
        assert f"process {process.pid}" in said


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "choose another --listen" in refusal(tmp_path, "--listen", f"127.0.0.1:{port}")


def test_an_unknown_setting_is_refused_with_the_nearest(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--listen", "127.0.0.1:0", "--override", "log.retention.hous=1")
    assert "log.retention.hours" in said


def test_a_bad_topic_keeps_it_from_starting(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--listen", "127.0.0.1:0", "--topic", "t:1:no.such=1")
    assert "no.such" in said


@pytest.mark.parametrize(
    ("text", "name", "partitions", "configs"),
    [
        ("a", "a", -1, {}),
        ("a:3", "a", 3, {}),
        ("a::k=v", "a", -1, {"k": "v"}),
        ("a:2:cleanup.policy=compact,delete,retention.ms=5", "a", 2,
         {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
    ],
)
def test_a_topic_is_a_name_a_count_and_settings(
    text: str, name: str, partitions: int, configs: dict[str, str]
) -> None:
    wanted = topic(text)
    assert (wanted.name, wanted.partitions, wanted.configs) == (name, partitions, configs)


@pytest.mark.parametrize("text", ["a:x", "a:1:novalue"])
def test_a_topic_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        topic(text)
