"""What is secret is nowhere but where it has to be: no log, error, answer, dump or trace shows it.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from click.testing import CliRunner
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafkalite.cli.main import main
from kafkalite.client.addresses import addresses
from kafkalite.client.cluster import Cluster
from kafkalite.protocol.messages import (
    CreateDelegationTokenRequest,
    DescribeConfigsRequest,
    DescribeDelegationTokenRequest,
    IncrementalAlterConfigsRequest,
)
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
from kafkalite.testing.recording.recorder import Recorder
from kafkalite.testing.recording.trace import to_json
from kafkalite.tools.running import main as tool
from tests.unit.security.signing import claims, key_set, public, rsa_key, signed

WORDS = ("correct-horse", "battery-staple", "wrong-guess", "stolen-later")
USERS = {"alice": WORDS[0], "bob": WORDS[1]}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"security": "sasl_ssl", "mechanism": "PLAIN", "users": USERS},
    "scram": {"security": "sasl_plaintext", "mechanism": "SCRAM-SHA-256", "users": USERS},
    "mutual": {"security": "ssl", "client_certificates": ["alice", "bob"]},
}


@pytest.fixture(params=list(KINDS))
def kafka(request, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[EmbeddedKafka]:
    caplog.set_level(logging.DEBUG)
    with EmbeddedKafka(
        tmp_path / "data", **KINDS[request.param], acls=["User:bob read topic *"],
        settings={
            "kafkalite.audit.log": tmp_path / "audit.log",
            "super.users": "User:CN=alice;User:alice",
        },
    ) as broker:  # fmt: skip
        broker.keep_exchanges()
        yield broker


def secrets_of(kafka: EmbeddedKafka) -> list[str]:
    """As they are, and in base64 wherever they begin in it."""
    plain = list(WORDS)
    secured = kafka._plan.secured
    assert secured is not None
    if secured.keys is not None:
        issued = [secured.keys.broker, *secured.keys.clients.values()]
        plain += [each.key_pem.splitlines()[1] for each in issued]
    shown = [base64.b64encode(b"x" * at + each.encode()) for each in WORDS for at in range(3)]
    return plain + [each[4:-4].decode() for each in shown]


def used(kafka: EmbeddedKafka) -> list[str]:
    """Everything that clients do with secrets, and what they are answered."""
    said = [repr(kafka), repr(kafka._plan), repr(kafka._security)]
    told = kafka.client_config("confluent")
    producer = confluent_kafka.Producer(told)
    producer.produce("orders", b"x")
    producer.flush(10)
    for changes in ({"sasl.password": WORDS[2]}, {"sasl.username": "eve"}):
        if "sasl.password" in told:
            wrong = AdminClient({**told, **changes, "log_level": 0})
            with pytest.raises(confluent_kafka.KafkaException) as raised:
                wrong.list_topics(timeout=2)
            said.append(str(raised.value))
    admin = AdminClient(told)
    described = admin.describe_configs([ConfigResource(ResourceType.BROKER, "1")])
    for answer in described.values():
        try:
            said.append(repr({name: each.value for name, each in answer.result(10).items()}))
        except confluent_kafka.KafkaException as error:
            said.append(str(error))
    upsertion = UserScramCredentialUpsertion(
        "carol", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), WORDS[3].encode()
    )
    answers = admin.alter_user_scram_credentials([upsertion]).values()
    said += [repr(answer.exception(10)) for answer in answers]
    said += [repr(each) for each in kafka.exchanges]
    return said


def test_no_secret_is_anywhere(
    kafka: EmbeddedKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = used(kafka)
    secrets = secrets_of(kafka)
    config = tmp_path / "client.properties"
    told = kafka.client_config("java").items()
    config.write_text("".join(f"{name}={text}\n" for name, text in told))
    for call in (
        ["consume", "-b", kafka.bootstrap_servers, "--command-config", str(config), "orders"],
        ["consume", "-b", kafka.bootstrap_servers, "--timeout", "0.1", "orders"],
    ):
        said.append(CliRunner().invoke(main, call).output)
    kafka.stop()
    assert "correct-horse" not in caplog.text
    said.append(caplog.text)
    said.append((tmp_path / "audit.log").read_text())
    for file in (tmp_path / "data").rglob("*.log"):
        said.append(CliRunner().invoke(main, ["dump", "segment", str(file)]).output)
        said.append(file.read_bytes().decode("latin-1"))
    text = "\n".join(said)
    assert len(text) > 1_000
    for secret in secrets:
        assert secret not in text, text[max(0, text.find(secret) - 200) :][:300]


@pytest.mark.parametrize("settings", [
    {"listener.name.plaintext.plain.sasl.jaas.config": f'x.Y required user_a="{WORDS[0]}"'},
    {"ssl.keystore.password": WORDS[0]},
    {"ssl.keystore.key": WORDS[0], "ssl.keystore.type": "PEM", "listeners": "SSL://127.0.0.1:0"},
    {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN",
     "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'x.Y required user_a="{WORDS[0]}'},
])  # fmt: skip
def test_a_refused_start_shows_none(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    said = ""
    try:
        EmbeddedKafka(settings=settings).start().stop()
    except BrokerFailed as error:
        said = str(error) + repr(error.__cause__)
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    said += CliRunner().invoke(main, ["config", "check", str(file)]).output
    assert WORDS[0] not in said + caplog.text


def test_a_tool_shows_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    for line in (WORDS[0], f"a.B required x={WORDS[0]};", f'a.B required password="{WORDS[0]}";'):
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f"sasl.jaas.config={line}\n"
        )
        words = ["--bootstrap-server", "127.0.0.1:1", "--list", "--command-config", str(config)]
        assert tool(["kafka-topics", *words]) == 1
        wrote = capsys.readouterr()
        assert "sasl.jaas.config: " in wrote.out + wrote.err
        assert WORDS[0] not in wrote.out + wrote.err


def test_no_token_of_an_issuer_is_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither one that is taken nor one that is not, whole or in parts."""
    caplog.set_level(logging.DEBUG)
    keys = tmp_path / "keys.json"
    keys.write_bytes(key_set(public(rsa_key("one"), "one")))
    now = int(time.time())
    good = signed(claims(now), rsa_key("one"), "one")
    bad = signed(claims(now), rsa_key("two"), "one")
    listener = "listener.name.sasl_plaintext.oauthbearer"
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
    }
    said: list[str] = []
    with EmbeddedKafka(tmp_path / "data", settings=settings) as kafka:
        kafka.keep_exchanges()
        for token in (good, bad):
            producer = confluent_kafka.Producer({
                "bootstrap.servers": kafka.bootstrap_servers, "log_level": 0,
                "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
                "oauth_cb": lambda _, token=token: (token, time.time() + 600),
            })
            producer.produce("orders", b"x")
            assert (producer.flush(5) == 0) is (token is good)
            producer.purge()
        said += [repr(each) for each in kafka.exchanges]
    said.append(caplog.text)
    for file in (tmp_path / "data").rglob("*.log"):
        said.append(file.read_bytes().decode("latin-1"))
    text = "\n".join(said)
    assert "failed to log in" in text
    for part in (good + "." + bad).split("."):
        assert part[8:40] not in text


def test_no_delegation_token_is_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with EmbeddedKafka(
        tmp_path / "data", **KINDS["scram"], settings={"delegation.token.secret.key": WORDS[3]}
    ) as kafka, Recorder(kafka.bootstrap_servers) as recorder:  # fmt: skip
        kafka.keep_exchanges()
        assert kafka._security is not None
        with closing(
            Cluster(addresses(recorder.bootstrap_servers), security=kafka._security)
        ) as cluster:
            made = cluster.ask_any(CreateDelegationTokenRequest(max_lifetime_ms=-1))
            assert not made.error_code
            [known] = cluster.ask_any(DescribeDelegationTokenRequest(owners=None)).tokens
            assert known.hmac == made.hmac
        said = [repr(each) for each in kafka.exchanges]
        said += [repr(each) for each in recorder.said]
        said += [repr(to_json(each)) for each in recorder.said]
    said.append(caplog.text)
    for file in (tmp_path / "data").rglob("*.log"):
        said.append(CliRunner().invoke(main, ["dump", "segment", str(file)]).output)
        said.append(file.read_bytes().decode("latin-1"))
    proof = bytes(made.hmac)
    text = "\n".join(said)
    assert made.token_id in text
    for shown in (
        WORDS[3], base64.b64encode(proof).decode(), proof.hex(), repr(proof)[2:40],
        proof.decode("latin-1"), USERS["alice"],
    ):  # fmt: skip
        assert shown not in text


def test_no_setting_that_is_secret_is_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither one that is taken nor one that is not, but for the log in which it has to be."""
    caplog.set_level(logging.DEBUG)
    kind = IncrementalAlterConfigsRequest
    taken = {
        "listener.name.other.ssl.key.password": WORDS[0], "what.nobody.knows": WORDS[1],
        "sasl.jaas.config": WORDS[2],
    }  # fmt: skip
    refused = {"ssl.key.password": WORDS[3], "log.retention.ms": "x"}
    said: list[str] = []
    with EmbeddedKafka(tmp_path / "data") as kafka, Recorder(kafka.bootstrap_servers) as recorder:
        kafka.keep_exchanges()
        with closing(Cluster(addresses(recorder.bootstrap_servers))) as cluster:
            for changes, are_taken in ((taken, True), (refused, False)):
                configs = [kind.Config(name=name, value=text) for name, text in changes.items()]
                for each in ([config] for config in configs):
                    resource = kind.Resource(resource_type=4, resource_name="1", configs=each)
                    [answer] = cluster.ask_any(kind(resources=[resource])).responses
                    assert (not answer.error_code) is are_taken, answer
                    said.append(repr(answer))
            own = DescribeConfigsRequest.Resource(resource_type=4, resource_name="1")
            said.append(repr(cluster.ask_any(DescribeConfigsRequest(resources=[own]))))
        said += [repr(each) for each in kafka.exchanges]
        said += [repr(each) + to_json(each) for each in recorder.said]
    said.append(caplog.text)
    logs = list((tmp_path / "data").rglob("__cluster_metadata-0/*.log"))
    logs += (tmp_path / "data").rglob("*.checkpoint")
    assert any(WORDS[0] in file.read_text("latin-1") for file in logs)
    said += [CliRunner().invoke(main, ["dump", "segment", str(file)]).output for file in logs]
    text = "\n".join(said)
    assert "listener.name.other.ssl.key.password" in text
    for secret in WORDS:
        assert secret not in text, text[max(0, text.find(secret) - 200) :][:300]
