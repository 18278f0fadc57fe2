"""`kafkalite serve --secure`: one command, and what it prints is what clients need."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click import ClickException
from click.testing import CliRunner
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafkalite.cli._secure import beside
from kafkalite.cli.main import main

PROGRAM = [sys.executable, "-m", "kafkalite", "serve", "--secure", "--listen", "127.0.0.1:0"]
STARTED = "Transitioning from RECOVERY to RUNNING."
SECONDS = 60


@dataclass
class Served:
    """A broker in a process of its own, and what it has said."""

    said: str
    folder: Path

    @property
    def where(self) -> str:
        return re.findall(r"-b (\S+) --command-config", self.said)[0]

    def line(self, beginning: str) -> str:
        """What it says to type."""
        [found] = [
            each for each in self.said.splitlines() if each.strip().startswith(beginning)
        ]
        return found.strip()


@contextmanager
def served(data: Path, *words: str) -> Iterator[Served]:
    call = [*PROGRAM, "--data-dir", str(data), *words]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        said, end = "", time.monotonic() + SECONDS
        assert process.stdout is not None
        while STARTED not in said and time.monotonic() < end:
            line = process.stdout.readline()
            assert line, f"it ended: {said}"
            said += line
        yield Served(said, data.with_name(f"{data.name}.secure"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


def typed(line: str, folder: Path, text: str = "") -> str:
    """A line as a person types it, with our programs by their names."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    tools = f'exec {sys.executable} -m kafkalite.tools "$0" "$@"'
    ours = f'exec {sys.executable} -m kafkalite "$@"'
    for name, does in {
        "kafkalite": ours, "kafka-configs.sh": tools, "kafka-acls.sh": tools,
    }.items():  # fmt: skip
        program = programs / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        line, shell=True, input=text, env=environment, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(line: str, folder: Path, then: str) -> str:
    """A line of Python, given to a stock client, and what is done with what it makes."""
    program = f"from kafka import KafkaProducer\nproducer = {line}\n{then}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


SENDS = 'print(producer.send("greetings", b"python").get(20).offset); producer.close()'


def test_what_it_prints_is_what_clients_need_also_after_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "my data"
    with served(data) as first:
        assert python(first.line("KafkaProducer("), tmp_path, SENDS) == "0\n"
        typed(first.line("kafkalite produce"), tmp_path, "one\n")
        assert typed(first.line("kafkalite consume"), tmp_path) == "python\none\n"
        typed(first.line("kafka-configs.sh"), tmp_path)
        typed(first.line("kafka-acls.sh"), tmp_path)
        as_alice = first.line("KafkaProducer(").replace('"admin"', '"alice"')
        as_alice = re.sub(r"open\(.*?\)\.read\(\)", '"alice-secret"', as_alice)
        assert python(as_alice, tmp_path, SENDS) == "2\n"
        assert stat.S_IMODE(first.folder.stat().st_mode) == 0o700
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in first.folder.iterdir()}
        names = ("admin.password", "admin.properties", "ca.pem", "server.pem")
        assert modes == dict.fromkeys(names, 0o600)
        password = (first.folder / "admin.password").read_text()
        assert len(password) > 30
        assert password not in first.said
    with served(data) as again:
        assert python(again.line("KafkaProducer("), tmp_path, SENDS) == "3\n"
        assert (again.folder / "admin.password").read_text() == password
        assert python(as_alice.replace(first.where, again.where), tmp_path, SENDS) == "4\n"


def test_who_takes_the_password_away_goes_on_with_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data) as first:
        password = first.folder / "admin.password"
        secret = password.read_text()
        password.unlink()
    with served(data) as again:
        assert not password.exists()
        line = again.line("KafkaProducer(").replace(f"open({str(password)!r}).read()", repr(secret))
        assert python(line, tmp_path, SENDS) == "0\n"


def test_nobody_else_is_let_in(tmp_path: Path) -> None:
    with served(tmp_path / "data") as it:
        common = {"bootstrap.servers": it.where, "log_level": 0}
        for told in (
            common,
            {
                **common, "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
                "ssl.ca.location": str(it.folder / "ca.pem"), "sasl.username": "admin",
                "sasl.password": "wrong",
            },
        ):  # fmt: skip
            with pytest.raises(KafkaException):
                AdminClient(told).list_topics(timeout=2)


def test_what_does_not_go_with_it(tmp_path: Path) -> None:
    for words in (["--memory"], ["--control", "127.0.0.1:0"]):
        done = CliRunner().invoke(main, ["serve", "--secure", *words])
        assert done.exit_code == 2
        assert "--secure goes with no --config, --memory or --control" in done.output
    folder = tmp_path / "data.secure"
    folder.mkdir()
    (folder / "server.pem").touch()
    done = CliRunner().invoke(main, ["serve", "--secure", "--data-dir", str(tmp_path / "data")])
    assert done.exit_code == 1
    assert "ca.pem is missing: put it back" in done.output


@pytest.mark.parametrize("text", [b"", b" \n", b"caf\xe9"])
def test_an_admin_is_not_made_without_a_password(tmp_path: Path, text: bytes) -> None:
    folder = tmp_path / "data.secure"
    folder.mkdir()
    (folder / "admin.password").write_bytes(text)
    call = [*PROGRAM, "--data-dir", str(tmp_path / "data")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert "there is no password in" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secure = beside(str(tmp_path / "data"))
    secure.folder.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: secure.folder.stat().st_uid + 1)
    monkeypatch.setattr(Path, "chmod", lambda path, mode: None)  # as the superuser may
    with pytest.raises(ClickException, match="belongs to user"):
        secure.prepare("127.0.0.1")
    assert not list(secure.folder.iterdir())
