"""Profiles and files of settings: where a command goes, and as whom."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkalite.cli import _where
from kafkalite.cli._private_file import write_private
from kafkalite.cli.main import main
from kafkalite.config import parse_properties
from kafkalite.config.properties import as_properties
from kafkalite.testing.embedded import EmbeddedKafka

SECRET = 'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
username="me" password="s3 \\\\ crét";\n'
LOGIN = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{SECRET}"


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(topics={"orders": 1}) as broker:
        yield broker


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKALITE_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setattr(_where, "DEFAULT_BOOTSTRAP", "127.0.0.1:1")  # of nobody
    monkeypatch.chdir(tmp_path)
    (tmp_path / "client.properties").write_text(LOGIN, encoding="utf-8")
    return tmp_path / "profiles"


def run(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


def done(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_profiles_life(kafka: EmbeddedKafka, folder: Path) -> None:
    assert done("profile", "list", "-o", "json") == "[]\n"
    done("profile", "set", "here", "-b", kafka.bootstrap_servers, "-o", "name")
    done("profile", "set", "prod", "-b", "far:9092,[::1]:9093", "--config", "client.properties")
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run("topic", "list").exit_code == 4  # nobody is at the default's address
    done("profile", "use", "here")
    assert done("topic", "list") == "orders\n"
    assert "orders" in done("topic", "list", "-o", "table", "--profile", "here").splitlines()[1]
    rows = json.loads(done("profile", "list", "-o", "json"))
    assert [(each["profile"], each["in_use"], each["security_protocol"]) for each in rows] == [
        ("here", True, "PLAINTEXT"), ("prod", False, "SASL_PLAINTEXT"),
    ]  # fmt: skip
    assert rows[1]["bootstrap_servers"] == "far:9092,[::1]:9093"
    shown = done("profile", "show", "prod")
    assert ("sasl.jaas.config=(hidden)" in shown, "s3" in shown) == (True, False)
    done("profile", "set", "here", "--unset", "kafkalite.output")
    assert done("topic", "list").startswith("TOPIC")
    done("profile", "delete", "here", "--yes")
    assert run("profile", "use", "here").exit_code == 1


def test_what_is_kept_is_what_was_given(folder: Path) -> None:
    done("profile", "set", "p", "--config", "client.properties")
    kept = parse_properties((folder / "p.properties").read_text(encoding="latin-1"))
    assert kept == parse_properties(LOGIN)
    assert parse_properties(done("profile", "show", "p", "--secrets")) == kept


def test_what_is_secret_is_hidden(folder: Path) -> None:
    secrets = (
        "ssl.key.password", "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    )  # fmt: skip
    done("profile", "set", "p", *(f"{each}=s3cret" for each in secrets))
    assert done("profile", "show", "p").count("=(hidden)") == len(secrets)


def test_what_the_system_trusts_is_no_file(folder: Path) -> None:
    done("profile", "set", "p", "ssl.ca.location=probe", "security.protocol=ssl")
    assert "ssl.ca" not in (folder / "p.properties").read_text()


def test_a_private_file_is_written_whole_also_when_two_write_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    path = folder / "p"
    seen: list[str] = []
    replace = Path.replace

    def replacing(self: Path, target: Path) -> Path:
        if not seen:
            seen.append(self.name)
            monkeypatch.setattr(os, "getpid", lambda: 1)
            write_private(path, "theirs")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", replacing)
    write_private(path, "ours")
    assert path.read_text() == "ours"
    assert [each.name for each in folder.iterdir()] == ["p"]


def test_a_server_that_is_typed_gets_no_login_of_the_profile_in_use(kafka: EmbeddedKafka) -> None:
    done("profile", "set", "prod", "-b", "far:9092", "--config", "client.properties")
    done("profile", "use", "prod")
    assert "orders" in done("topic", "list", "-b", kafka.bootstrap_servers)
    named = run("topic", "list", "-b", kafka.bootstrap_servers, "--profile", "prod")
    assert named.exit_code != 0


def test_the_environment_chooses(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    done("profile", "set", "here", "-b", kafka.bootstrap_servers)
    monkeypatch.setenv("KAFKALITE_PROFILE", "here")
    assert "orders" in done("topic", "list")
    monkeypatch.setenv("KAFKALITE_PROFILE", "nowhere")
    result = run("topic", "list")
    assert (result.exit_code, "there is no profile nowhere, but here" in result.stderr) == (1, True)


def test_one_that_is_deleted_was_in_use_or_was_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        done("profile", "set", name, "-b", f"{name}:1")
    done("profile", "use", "a")
    monkeypatch.setenv("KAFKALITE_PROFILE", "b")
    done("profile", "delete", "b", "--yes")
    monkeypatch.delenv("KAFKALITE_PROFILE")
    assert done("profile", "show") == "bootstrap.servers=a:1\n"
    (folder / "in-use").write_bytes(b"\xff\xfe")
    result = run("topic", "list")
    assert (result.exit_code, "is no name of a profile" in result.stderr) == (1, True)


def test_a_file_says_where(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    for name in ("bootstrap.servers", "metadata.broker.list"):
        file = tmp_path / "file"
        file.write_text(f"{name}={kafka.bootstrap_servers}\nacks=all\nclient.id=me\n")
        result = run("topic", "list", "--config", "file")
        assert "orders" in result.stdout
        assert result.stderr == "kafkalite: file: acks has no effect here\n"


@pytest.mark.parametrize("library", ["confluent", "java"])
def test_a_secured_cluster_with_its_clients_own_file(library: str, tmp_path: Path) -> None:
    """A password that is wrong has an exit code, and so has what somebody may not do."""
    with EmbeddedKafka(
        security="sasl_ssl", mechanism="SCRAM-SHA-512", users={"alice": "se=cret"},
        acls=["User:alice describe topic orders"], topics={"orders": 1},
    ) as kafka:  # fmt: skip
        told = {key: str(value) for key, value in kafka.client_config(library).items()}
        file = tmp_path / "file"
        file.write_text(as_properties(told))
        assert done("topic", "list", "-o", "name", "--config", "file") == "orders\n"
        done("profile", "set", "secured", "--config", "file")
        done("profile", "use", "secured")
        assert done("topic", "list", "-o", "name") == "orders\n"
        refused = run("topic", "create", "other")
        assert (refused.exit_code, "AUTHORIZATION_FAILED" in refused.stderr) == (5, True)
        file.write_text(as_properties(told).replace("se=cret", "wrong"))
        wrong = run("topic", "list", "--config", "file")
        assert (wrong.exit_code, "no login at" in wrong.stderr) == (5, True)


@pytest.mark.parametrize(("words", "exit_code", "said"), [
    (("profile", "set", "../x", "-b", "a:1"), 1, "is no name of a profile"),
    (("profile", "set", "x", "speed=1"), 1, "speed has no effect here"),
    (("profile", "set", "x", "security.protocol=SASL_SSL"), 1, "profile x: sasl.mechanism"),
    (("profile", "set", "x", "--unset", "speed"), 1, "profile x has no speed"),
    (("profile", "set", "x", "-b", "far"), 2, "is not HOST:PORT"),
    (("profile", "show"), 1, "no profile is in use"),
    (("profile", "delete", "x", "--yes"), 1, "there is no profile x, but none yet"),
    (("topic", "list", "--profile", "x", "--config", "client.properties"), 2, "not both"),
])  # fmt: skip
def test_what_is_wrong_is_told(words: tuple[str, ...], exit_code: int, said: str) -> None:
    result = run(*words)
    assert (result.exit_code, said in result.stderr) == (exit_code, True), result.stderr


def test_somebody_without_a_home(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("KAFKALITE_PROFILES", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert run("topic", "list").exit_code == 4  # nobody is at the default's address
    assert "orders" in done("topic", "list", "-b", kafka.bootstrap_servers)
    kept = run("profile", "set", "x", "-b", "a:1")
    assert (kept.exit_code, "Not a directory" in kept.stderr) == (1, True)


def test_names_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    done("profile", "set", "prod", "-b", "far:9092")
    monkeypatch.setenv("COMP_WORDS", "kafkalite topic list --profile p")
    monkeypatch.setenv("COMP_CWORD", "4")
    monkeypatch.setenv("_KAFKALITE_COMPLETE", "bash_complete")
    result = CliRunner().invoke(main, [], prog_name="kafkalite")
    assert "plain,prod" in result.output


def test_topics_are_completed(kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_KAFKALITE_COMPLETE", "bash_complete")
    for where, said in ((kafka.bootstrap_servers, "plain,orders\n"), ("127.0.0.1:1", "\n")):
        monkeypatch.setenv("COMP_WORDS", f"kafkalite consume -b {where} o")
        monkeypatch.setenv("COMP_CWORD", "4")
        assert CliRunner().invoke(main, [], prog_name="kafkalite").output == said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told(shell: str) -> None:
    script = done("completion", shell)
    assert f"_KAFKALITE_COMPLETE={shell}_complete" in script
