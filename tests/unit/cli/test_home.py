"""`kafkalite home`: its scripts, its server's life, and what is kept when it is written again."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.tools.table import CLASSES, MODULES

PATIENCE_S = 30
POLL_S = 0.1


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "a home"
    written = CliRunner().invoke(main, ["home", str(folder)])
    assert written.exit_code == 0, written.output
    return folder


def call(home: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [home / "bin" / name, *words], capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip


def test_each_tool_has_its_scripts(home: Path) -> None:
    for name in MODULES:
        assert (home / "bin" / name).read_text() == (home / "bin" / f"{name}.sh").read_text()
    assert call(home, "kafka-topics.sh", "--version").stdout == "4.3.1\n"
    by_class = call(home, "kafka-run-class.sh", CLASSES["kafka-topics"], "--version")
    assert by_class.stdout == "4.3.1\n"


def test_what_was_configured_is_kept(home: Path) -> None:
    server = home / "config" / "server.properties"
    server.write_text("node.id=7\n")
    (home / "bin" / "kafka-topics.sh").write_text("broken")
    CliRunner().invoke(main, ["home", str(home)])
    assert server.read_text() == "node.id=7\n"
    assert call(home, "kafka-topics.sh", "--version").returncode == 0


@pytest.mark.parametrize("start", [
    ("kafka-server-start.sh", "-daemon"), ("kafka-run-class.sh", "-daemon", "kafka.Kafka"),
])
def test_a_server_is_started_asked_and_stopped(home: Path, start: tuple[str, ...]) -> None:
    port = free_port()
    config = str(home / "config" / "server.properties")
    where = f"127.0.0.1:{port}"
    script, *words = start
    listeners = f"listeners=PLAINTEXT://{where},CONTROLLER://127.0.0.1:{free_port()}"
    started = call(
        home, script, *words, config, "--override", listeners,
        "--override", f"advertised.listeners=PLAINTEXT://{where}",
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
    try:
        wait_for(home, "started")
        made = call(home, "kafka-topics", "--bootstrap-server", where, "--create", "--topic", "t")
        assert made.stdout == "Created topic t.\n"
        listed = call(home, "kafka-topics.sh", "--bootstrap-server", where, "--list")
        assert listed.stdout == "t\n"
    finally:
        stopped = call(home, "kafka-server-stop.sh")
    assert stopped.returncode == 0
    wait_for(home, "kafkalite is stopping")
    again = call(home, "kafka-server-stop.sh")
    assert (again.returncode, again.stdout) == (1, "No kafka server to stop\n")


def test_what_a_start_needs(home: Path) -> None:
    for words in ((), ("-daemon",)):
        refused = call(home, "kafka-server-start.sh", *words)
        assert refused.returncode == 1
        assert refused.stdout.startswith("USAGE: ")


def test_a_start_reads_the_jaas_file_that_a_jvm_would(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", "-Dx=y -Djava.security.auth.login.config=/none/jaas.conf")
    refused = call(home, "kafka-server-start.sh", str(home / "config" / "server.properties"))
    assert refused.returncode == 1
    assert "java.security.auth.login.config: /none/jaas.conf: No such file" in refused.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def wait_for(home: Path, words: str) -> None:
    log = home / "logs" / "kafkaServer.out"
    deadline = time.monotonic() + PATIENCE_S
    while not log.exists() or words not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(POLL_S)
