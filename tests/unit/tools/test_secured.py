"""The native tools and `kafkalite produce|consume` at a broker that does not let everybody in."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkalite.cli.main import main as program
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.tools.running import main

USERS = {"alice": "alice-secret", "bob": "bob-secret"}
WAYS: dict[str, dict[str, Any]] = {
    "ssl": {"security": "ssl"},
    "mutual": {"security": "ssl", "client_certificates": ["alice"]},
    "plain": {"security": "sasl_plaintext", "mechanism": "PLAIN", "users": USERS},
    "scram": {"security": "sasl_ssl", "mechanism": "SCRAM-SHA-512", "users": USERS},
}
JAAS = """KafkaClient {
  org.apache.kafka.common.security.plain.PlainLoginModule required
  username="alice" password="alice-secret";
};
"""


@pytest.fixture(scope="module", params=list(WAYS))
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(**WAYS[request.param], topics=["t"]) as broker:
        yield broker


@pytest.fixture(scope="module")
def logins() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(**WAYS["plain"], topics=["t"]) as broker:
        yield broker


@pytest.fixture
def config(kafka: EmbeddedKafka, tmp_path: Path) -> str:
    return config_of(kafka, tmp_path)


def config_of(kafka: EmbeddedKafka, folder: Path, **changes: str) -> str:
    told = {**kafka.client_config("java"), **changes}
    del told["bootstrap.servers"]
    path = folder / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    return str(path)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def run(kafka: EmbeddedKafka, name: str, *words: str) -> int:
    return main([name, "--bootstrap-server", kafka.bootstrap_servers, *words])


def test_a_tool_of_administrators(
    kafka: EmbeddedKafka, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(kafka, "kafka-topics", "--list", "--command-config", config) == 0
    assert "t\n" in capsys.readouterr().out


@pytest.mark.parametrize("older", [True, False])
def test_the_console_tools(
    kafka: EmbeddedKafka, config: str, typed: Callable[[bytes], None],
    capsys: pytest.CaptureFixture[str], *, older: bool,
) -> None:
    sends, reads = ("--producer.config", "--consumer.config") if older else (
        "--command-config", "--command-config"
    )  # fmt: skip
    typed(b"one\ntwo\n")
    assert run(kafka, "kafka-console-producer", "--topic", "t", sends, config) == 0
    ends = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "10000")
    assert run(kafka, "kafka-console-consumer", "--topic", "t", reads, config, *ends) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["one", "two"]
    member = ("--group", f"g{older}", *ends)
    assert run(kafka, "kafka-console-consumer", "--topic", "t", reads, config, *member) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["one", "two"]


def commanded(kafka: EmbeddedKafka, command: str, *words: str, typed: bytes = b"") -> Result:
    call = [command, "-b", kafka.bootstrap_servers, *words]
    return CliRunner().invoke(program, call, input=typed)


def test_the_commands(kafka: EmbeddedKafka, config: str) -> None:
    how = ("--command-config", config)
    assert commanded(kafka, "produce", *how, "own", typed=b"one\n").exit_code == 0
    assert commanded(kafka, "consume", *how, "-n", "1", "own").stdout_bytes == b"one\n"


def test_who_is_not_let_in_hears_why_at_once(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": own_root()}
    if "sasl.mechanism" in kafka.client_config("java"):
        line = kafka.client_config("java")["sasl.jaas.config"]
        wrong = {"sasl.jaas.config": line.replace("alice-secret", "wrong")}
    given = {**kafka.client_config("java"), **wrong}
    given = {name: text for name, text in given.items() if name != "bootstrap.servers"}
    if "ssl.truststore.certificates" in given:
        given.pop("ssl.truststore.location")
    path = tmp_path / "wrong.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    assert run(kafka, "kafka-topics", "--list", "--command-config", str(path)) == 1
    said = capsys.readouterr().err
    is_login = "sasl.mechanism" in given
    assert f"{'Sasl' if is_login else 'Ssl'}AuthenticationException: " in said
    assert "failed authentication due to: " in said
    result = commanded(kafka, "consume", "--command-config", str(path), "t")
    assert result.exit_code == 5
    assert ("no login at" if is_login else "SSL handshake failed") in result.output
    assert "-secret" not in said + result.output


def own_root() -> str:
    from kafkalite.security.authority import pem_of
    from tests.unit.security import keys

    return pem_of(keys.server().root).replace("\n", "\\n")


def test_in_the_open_nobody_is_let_in(kafka: EmbeddedKafka) -> None:
    result = commanded(kafka, "consume", "--timeout", "0.1", "t")
    assert result.exit_code == 4
    assert result.stdout_bytes == b""


def test_a_file_that_cannot_be_is_refused_in_one_sentence(
    logins: EmbeddedKafka, tmp_path: Path
) -> None:
    config = config_of(logins, tmp_path, **{"sasl.mechanism": "KERBEROS", "acks": "all"})
    result = commanded(logins, "consume", "--command-config", config, "t")
    assert result.exit_code == 1
    [ignored, refused] = result.output.splitlines()
    assert ignored.endswith("acks has no effect here")
    assert "sasl.mechanism: KERBEROS is not spoken here" in refused


def test_a_jaas_file_says_who_a_tool_is(logins: EmbeddedKafka, tmp_path: Path) -> None:
    jaas, config = tmp_path / "jaas.conf", tmp_path / "client.properties"
    jaas.write_text(JAAS)
    config.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n")
    call = [sys.executable, "-m", "kafkalite.tools", "kafka-topics", "--list",
            "--bootstrap-server", logins.bootstrap_servers, "--command-config", str(config)]
    done = subprocess.run(
        call, capture_output=True, text=True, timeout=60, check=False,
        env={"PYTHONPATH": ":".join(sys.path),
             "KAFKA_OPTS": f"-Djava.security.auth.login.config={jaas}"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "t\n"), done.stderr
