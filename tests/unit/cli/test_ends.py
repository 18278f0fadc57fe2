"""How commands that ask a cluster end when it does not go well: a sentence and an exit code."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalite.cli.main import main
from kafkalite.client import client_quotas
from kafkalite.client.changes import Changes
from kafkalite.testing.embedded import EmbeddedKafka

ASKING = (
    "acl list", "acl add User:a.read.topic.t", "acl remove User:a.read.topic.t --yes",
    "user list", "user add u --password-file password", "user delete u --yes", "quota list",
    "quota set --user u producer_byte_rate=1", "quota unset --user u x", "log dirs", "top -n 1",
    "topic stat t", "topic copy t u", "topic read t", "consume t", "produce t", "topic list",
    "cluster health", "group list", "config get topic t", "txn list",
)  # fmt: skip


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"a": 1, "b": 1, "c": 1}) as broker:
        yield broker


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password").write_text("secret\n")


def run(line: str, *words: str) -> Result:
    call = [word.replace(".", " ") if ":" in word else word for word in line.split()]
    return CliRunner().invoke(main, [*call, *words], input=b"x\n")


@pytest.mark.parametrize("line", ASKING)
def test_nobody_answers(line: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]  # of nobody, in a moment
    patience = ("--timeout", "0") if "--timeout" in run(f"{line} --help").stdout else ()
    result = run(line, "-b", f"127.0.0.1:{port}", *patience)
    assert result.exit_code == 4, result.output
    assert result.stderr.startswith("kafkalite: no broker answers (")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("line", ASKING)
def test_a_wrong_address(line: str) -> None:
    result = run(line, "-b", "broker")
    assert (result.exit_code, "'broker' is not HOST:PORT" in result.stderr) == (2, True)


@pytest.mark.parametrize("line", [
    "topic stat missing", "topic copy missing a", "topic read missing", "consume missing",
    "topic describe missing",
])  # fmt: skip
def test_a_topic_that_is_not_there(kafka: EmbeddedKafka, line: str) -> None:
    result = run(line, "-b", kafka.bootstrap_servers)
    assert (result.exit_code, result.stderr) == (1, "kafkalite: there is no topic missing\n")


@pytest.mark.parametrize("words", [
    "consume a -o @yesterday", "consume a --until @25:00", "topic stat a --from @",
    "topic copy a b --until @2026-13-01", "group reset g -t a --to @x",
])  # fmt: skip
def test_a_time_that_nobody_can_read(kafka: EmbeddedKafka, words: str) -> None:
    result = run(words, "-b", kafka.bootstrap_servers)
    assert result.exit_code == 2
    assert "expected milliseconds since 1970" in result.stderr.replace("\n", " ")


def test_a_pipe_that_closes(kafka: EmbeddedKafka) -> None:
    run("produce pipe", "-b", kafka.bootstrap_servers)
    many = CliRunner().invoke(
        main, ["produce", "-b", kafka.bootstrap_servers, "pipe"], input=b"a line\n" * 50_000
    )
    assert many.exit_code == 0
    for command in ("consume pipe", "consume -J pipe"):
        call = [sys.executable, "-m", "kafkalite", *command.split(), "-b", kafka.bootstrap_servers]
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert (process.wait(20), process.stderr.read()) == (141, b"")


def test_ctrl_c_between_changes(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = Changes.delete_topic

    def interrupted(self: Changes, name: str) -> None:
        if name == "b":
            raise KeyboardInterrupt
        delete(self, name)

    monkeypatch.setattr(Changes, "delete_topic", interrupted)
    result = run("topic delete a b c --yes", "-b", kafka.bootstrap_servers)
    assert (result.exit_code, result.stdout) == (130, "a: is not there any more\n")
    assert result.stderr == (
        "kafkalite: interrupted; b may be changed or not, and nothing was asked for c\n"
    )


def test_ctrl_c_within_a_change(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(client_quotas, "alter", interrupted)
    result = run("quota set --user u producer_byte_rate=1", "-b", kafka.bootstrap_servers)
    assert (result.exit_code, result.stderr) == (
        130, "kafkalite: interrupted; the quotas of user u may be changed or not\n"
    )  # fmt: skip
