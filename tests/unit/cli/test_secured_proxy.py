"""`kafkalite proxy` and `replay` before brokers that want TLS and logins."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer

from kafkalite.cli.main import main
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.keys import Keys
from tests.unit.cli.test_proxy import proxying

PAGE = Path(__file__).parents[3] / "docs" / "proof.md"
USERS = {"alice": "alice-secret"}
COUNT, POLL_S, POLLS = 3, 0.5, 40


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(security="sasl_ssl", mechanism="SCRAM-SHA-512", users=USERS) as broker:
        yield broker


@pytest.fixture(scope="module")
def shown() -> Iterator[Keys]:
    """Of the proxy itself."""
    keys = Keys("", ())
    keys.write()
    yield keys
    keys.remove()


def written(path: Path, given: dict[str, Any]) -> str:
    lines = (f"{name}={value}\n" for name, value in given.items() if name != "bootstrap.servers")
    path.write_text("".join(lines))
    return str(path)


def let_in(kafka: EmbeddedKafka, folder: Path, **changes: str) -> str:
    return written(folder / f"client-{id(kafka)}.properties",
                   {**kafka.client_config("java"), **changes})


def listening(shown: Keys, folder: Path, **more: str) -> str:
    return written(folder / "listen.properties", {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": shown.broker.key_pem.replace("\n", "\\n"),
        "ssl.keystore.certificate.chain": shown.broker.chain_pem.replace("\n", "\\n"),
        **more,
    })


def application(config: dict[str, Any], topic: str = "orders") -> None:
    """Writes, reads in a group."""
    producer = Producer(config)
    for number in range(COUNT):
        producer.produce(topic, f"order {number}")
    assert producer.flush(10) == 0
    group = {"group.id": f"clerks-of-{topic}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, **group})
    consumer.subscribe([topic])
    found = 0
    for _ in range(POLLS):
        found += consumer.poll(POLL_S) is not None
        if found >= COUNT:
            break
    assert found >= COUNT
    consumer.close()


def recorded(kafka: EmbeddedKafka, folder: Path, client: dict[str, Any], *options: str) -> Path:
    trace = folder / "trace.jsonl"
    options = ("--save", str(trace), "--command-config", let_in(kafka, folder), *options)
    with proxying(kafka.bootstrap_servers, folder, *options) as (port, process):
        application({**client, "bootstrap.servers": f"127.0.0.1:{port}"})
    assert process.returncode == 0
    return trace


def apis(trace: Path) -> set[str]:
    return {json.loads(line)["api"] for line in trace.read_text().splitlines()}


def test_clients_in_the_open_go_by_the_proxys_login(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    trace = recorded(kafka, tmp_path, {})
    assert {"Produce", "Fetch", "JoinGroup"} <= apis(trace)
    assert "SaslHandshake" not in apis(trace)


def test_clients_with_tls_and_a_login_of_their_own(
    kafka: EmbeddedKafka, shown: Keys, tmp_path: Path
) -> None:
    told = kafka.client_config("confluent")
    client = {**told, "ssl.ca.location": shown.ca}
    client.pop("ssl.ca.pem", None)
    without_login = {"security.protocol": "SSL"}
    trace = tmp_path / "trace.jsonl"
    to = let_in(kafka, tmp_path, **without_login)
    options = ("--save", str(trace), "--command-config", to, "--listen-config",
               listening(shown, tmp_path))
    with proxying(kafka.bootstrap_servers, tmp_path, *options) as (port, process):
        application({**client, "bootstrap.servers": f"127.0.0.1:{port}"})
    assert process.returncode == 0
    assert {"SaslHandshake", "SaslAuthenticate", "Produce", "Fetch"} <= apis(trace)
    tokens = [json.loads(line)["fields"]["auth_bytes"] for line in trace.read_text().splitlines()
              if '"SaslAuthenticate"' in line]
    assert tokens
    assert set(tokens) == {""}


def replayed(trace: Path, *places: tuple[EmbeddedKafka, str]) -> Result:
    return replay_of(trace, *((kafka.bootstrap_servers, config) for kafka, config in places))


def replay_of(trace: Path, *places: tuple[str, str]) -> Result:
    """To two brokers, each with the file of its login."""
    (ours, our_config), (theirs, their_config) = places
    return CliRunner().invoke(main, [
        "replay", str(trace), "--against", ours, "--against-config", our_config,
        "--oracle", theirs, "--oracle-config", their_config,
    ])


def test_a_trace_is_replayed_to_brokers_that_want_logins(
    kafka: EmbeddedKafka, shown: Keys, tmp_path: Path
) -> None:
    told = {**kafka.client_config("confluent"), "security.protocol": "SASL_PLAINTEXT"}
    told = {name: value for name, value in told.items() if not name.startswith("ssl.")}
    to = let_in(kafka, tmp_path, **{"security.protocol": "SSL"})
    trace = tmp_path / "trace.jsonl"
    options = ("--save", str(trace), "--command-config", to)
    with proxying(kafka.bootstrap_servers, tmp_path, *options) as (port, _):
        application({**told, "bootstrap.servers": f"127.0.0.1:{port}"})
    with (
        EmbeddedKafka(security="sasl_ssl", mechanism="PLAIN", users=USERS) as ours,
        EmbeddedKafka(security="ssl", client_certificates=["alice"]) as theirs,
    ):
        done = replayed(
            trace, (ours, let_in(ours, tmp_path)), (theirs, let_in(theirs, tmp_path))
        )
    assert done.exit_code == 0, done.output
    assert " 0 answered differently" in done.output
    assert "was a login" in done.output


def test_who_is_not_let_in_is_told_why_and_nothing_is_compared(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    trace = recorded(kafka, tmp_path, {})
    good = let_in(kafka, tmp_path)
    text = Path(good).read_text()
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(text.replace("alice-secret", "other-word"))
    done = replayed(trace, (kafka, str(wrong)), (kafka, good))
    assert done.exit_code == 3
    assert "does not let us in" in done.output
    assert "other-word" not in done.output


def test_a_login_that_is_refused_is_told_by_the_proxy_once(
    kafka: EmbeddedKafka, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(Path(let_in(kafka, tmp_path)).read_text().replace("alice-secret", "no"))
    with proxying(kafka.bootstrap_servers, tmp_path, "--command-config", str(wrong)) as (port, _):
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "message.timeout.ms": 2000})
        producer.produce("orders", "never")
        producer.flush(5)
    told = (tmp_path / "told").read_text()
    assert told.count("no login: ") == 1
    assert "--command-config" in told


def test_what_the_proxy_shows_is_checked_before_it_listens(tmp_path: Path) -> None:
    nothing = written(tmp_path / "listen.properties", {"ssl.client.auth": "required"})
    done = CliRunner().invoke(
        main, ["proxy", "--to", "localhost:1", "--listen-config", nothing]
    )
    assert done.exit_code == 1
    assert "ssl.keystore.location: who listens with TLS shows a certificate" in done.output


def test_a_client_without_a_certificate_is_kept_out_where_one_is_required(
    kafka: EmbeddedKafka, shown: Keys, tmp_path: Path
) -> None:
    config = listening(shown, tmp_path, **{
        "ssl.client.auth": "required", "ssl.truststore.type": "PEM",
        "ssl.truststore.location": shown.ca,
    })
    options = ("--command-config", let_in(kafka, tmp_path), "--listen-config", config)
    refused = []
    with proxying(kafka.bootstrap_servers, tmp_path, *options) as (port, _):
        producer = Producer({
            "bootstrap.servers": f"127.0.0.1:{port}", "message.timeout.ms": 2000,
            "security.protocol": "SSL", "ssl.ca.location": shown.ca,
        })
        producer.produce("orders", "never", on_delivery=lambda error, _: refused.append(error))
        producer.flush(5)
    assert [error is not None for error in refused] == [True]


def page_commands() -> list[list[str]]:
    """The words of each command of the page's block, without the program."""
    found = re.search(r"```sh secured\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return [shlex.split(line)[1:] for line in found[1].replace("\\\n", "").splitlines()]


def test_the_page_can_be_typed(
    kafka: EmbeddedKafka, shown: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    java = kafka.client_config("java")
    written(tmp_path / "client.properties", java)
    written(tmp_path / "tls.properties", {**java, "security.protocol": "SSL"})
    listening(shown, tmp_path)
    (tmp_path / "listen.properties").rename("listener.properties")
    in_the_open, encrypted, replay = page_commands()
    client = {**kafka.client_config("confluent"), "ssl.ca.location": shown.ca}
    for words, config in ((in_the_open, {}), (encrypted, client)):
        assert words[:3] == ["proxy", "--to", "localhost:9093"]
        with proxying(kafka.bootstrap_servers, tmp_path, *words[3:]) as (port, process):
            application({**config, "bootstrap.servers": f"127.0.0.1:{port}"})
        assert process.returncode == 0
        (tmp_path / "port").unlink()
    with EmbeddedKafka(security="sasl_ssl", mechanism="PLAIN", users=USERS) as other:
        written(tmp_path / "other.properties", other.client_config("java"))
        places = {"localhost:9093": kafka.bootstrap_servers,
                  "localhost:9094": other.bootstrap_servers}
        words = [places.get(word, word) for word in replay]
        words[-1] = "other.properties"
        done = CliRunner().invoke(main, words)
    assert "requests: " in done.output, done.output
