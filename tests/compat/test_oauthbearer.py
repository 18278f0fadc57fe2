"""OAUTHBEARER, on both brokers: each client with tokens of an issuer on loopback, taken or refused
alike, and what is said byte by byte."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider

from kafkalite.config.protections import SIGNED_CHECK
from kafkalite.jvm import jars, java
from tests.compat import brokers
from tests.compat.brokers import TEST_JVM, Broker, free_ports
from tests.compat.issuer import AUDIENCE, ISSUER, In, Issuer, at_moment, token
from tests.compat.sasl_talk import METADATA, Raw, shake
from tests.compat.sasl_talk import token as authenticate
from tests.sampled import sampled
from tests.unit.security.signing import part, signed, unsecured
from tests.unit.security.signing import rsa_key as key_of

ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
TOPICS = "org.apache.kafka.tools.TopicCommand"
WAIT_S = 20


class Place:
    """A broker with a listener for signed tokens, one for unsecured ones, and one for anybody."""

    def __init__(self, broker: Broker, issuer: Issuer, signed: int, loose: int) -> None:
        self.broker, self.issuer = broker, issuer
        self.port, self.loose = signed, loose
        self.bootstrap = f"127.0.0.1:{signed}"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    issuer.kinds.update(WRONG)
    yield issuer
    issuer.close()


@pytest.fixture(scope="module")
def place(
    broker_kind: str, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    plain, port, loose, controller = free_ports(4)
    listeners = (
        f"PLAINTEXT://127.0.0.1:{plain},SIGNED://127.0.0.1:{port},LOOSE://127.0.0.1:{loose}"
    )
    keys = f"{issuer.address}/keys"
    own, open_to_all = "listener.name.signed", "listener.name.loose"
    settings = {
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SIGNED:SASL_PLAINTEXT,LOOSE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{own}.oauthbearer.sasl.jaas.config": f"{MODULE};",
        f"{own}.oauthbearer.sasl.server.callback.handler.class": SIGNED_CHECK,
        f"{own}.sasl.oauthbearer.jwks.endpoint.url": keys,
        f"{own}.sasl.oauthbearer.expected.audience": f"{AUDIENCE},spare",
        f"{own}.sasl.oauthbearer.expected.issuer": ISSUER,
        f"{open_to_all}.oauthbearer.sasl.jaas.config": (
            f'{MODULE} unsecuredLoginStringClaim_sub="nobody" '
            'unsecuredValidatorAllowableClockSkewMs="3000" '
            'unsecuredValidatorRequiredScope="all";'
        ),
    }
    is_ours = broker_kind == brokers.KAFKALITE
    settings["listeners"] = listeners if is_ours else (
        f"{listeners},CONTROLLER://127.0.0.1:{controller}"
    )
    if not is_ours:
        settings["controller.quorum.voters"] = f"1@127.0.0.1:{controller}"
    folder = tmp_path_factory.mktemp("oauth")
    broker = brokers.start(
        broker_kind, folder, settings, port=plain, jvm=(*TEST_JVM, ALLOWED + keys)
    )
    yield Place(broker, issuer, port, loose)
    broker.stop()


# What is wrong with a token, as claims that are otherwise, or the token itself.
WRONG: dict[str, dict[str, Any]] = {
    "audience": {"aud": "another"},
    "issuer": {"iss": "https://another"},
    "expired": {"iat": In(-7_200), "exp": In(-3_600)},
    "key": {"key": "stranger"},
    "unknown-key": {"key": "stranger", "key_id": "stranger"},
    "unsecured": {"token": f"{part({'alg': 'none'})}.{part({'sub': 'alice', 'aud': 'kafka'})}."},
}


def bearer(kind: str) -> str:
    said = dict(WRONG.get(kind, {}))
    return said.pop("token", None) or token(**said)


# --- clients --------------------------------------------------------------------------------------


# In a process of its own: one whose constructor fails leaves the sockets of its loop open.
KAFKA_PYTHON = """
import sys
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

bootstrap, token = sys.argv[1:]

class Provider(AbstractTokenProvider):
    def token(self):
        return token

try:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Provider(),
        bootstrap_timeout_ms=5_000,
    )
    producer.send("kafka-python", b"v").get(5)
    print("written")
except Exception as error:
    print(type(error).__name__)
"""


def kafka_python(place: Place, token: str) -> str:
    call = [sys.executable, "-c", KAFKA_PYTHON, place.bootstrap, token]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() or done.stderr


class Provider(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def aiokafka(place: Place, token: str) -> str:
    async def write() -> str:
        producer = AIOKafkaProducer(
            bootstrap_servers=place.bootstrap, security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Provider(token),
            request_timeout_ms=5_000,
        )  # fmt: skip
        try:
            await producer.start()
            await producer.send_and_wait("aiokafka", b"v")
        except Exception as error:  # noqa: BLE001
            return type(error).__name__
        finally:
            await producer.stop()
        return "written"

    return asyncio.run(write())


def confluent(place: Place, token: str) -> str:
    errors: list[Any] = []
    delivered: list[Any] = []
    producer = confluent_kafka.Producer({
        "bootstrap.servers": place.bootstrap, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER", "error_cb": errors.append, "message.timeout.ms": 8_000,
        "oauth_cb": lambda config: (token, time.time() + 3_600),
    })  # fmt: skip
    producer.produce("confluent", b"v", on_delivery=lambda error, _: delivered.append(error))
    deadline = time.monotonic() + WAIT_S
    refused = None
    while not delivered and refused is None and time.monotonic() < deadline:
        producer.poll(0.1)
        refused = next((each for each in errors if each.name() == "_AUTHENTICATION"), None)
    if refused is not None:
        producer.purge()
        producer.flush(1)
        return str(refused.name())
    return "written" if delivered == [None] else str(delivered)


CLIENTS = {"kafka-python": kafka_python, "aiokafka": aiokafka, "confluent": confluent}
# What each says of a token that is not taken, on both brokers. aiokafka takes the broker's words
# for the end of its login, and asks for metadata in place of hearing that it was refused.
REFUSALS = {
    "kafka-python": "KafkaTimeoutError",
    "aiokafka": "UnknownTopicOrPartitionError",
    "confluent": "_AUTHENTICATION",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_let_in(place, client):
    assert CLIENTS[client](place, bearer("right")) == "written"


@pytest.mark.parametrize("kind", sampled(WRONG, "key"))
@pytest.mark.parametrize("client", CLIENTS)
def test_a_token_that_is_not_taken_is_the_same_error_to_a_client(place, client, kind):
    assert CLIENTS[client](place, bearer(kind)) == REFUSALS[client]


def java_says(place: Place, folder: Path, kind: str) -> str:
    """Apache Kafka's tool, with its own login handler, which asks the issuer."""
    endpoint = f"{place.issuer.address}/token"
    config = folder / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={LOGIN}\n"
        f"sasl.oauthbearer.token.endpoint.url={endpoint}\n"
        f'sasl.jaas.config={MODULE} clientId="alice" clientSecret="{kind}";\n'
        "default.api.timeout.ms=8000\nrequest.timeout.ms=5000\n"
    )
    call = java.command(
        jars.class_path("reference"), TOPICS, "--bootstrap-server", place.bootstrap,
        "--command-config", str(config), "--create", "--topic", f"java-{kind}", heap="192M",
    )  # fmt: skip
    call[1:1] = [*TEST_JVM, ALLOWED + endpoint]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


@pytest.mark.xdist_group("java-tools")
def test_javas_login_handler_is_let_in(place, tmp_path):
    assert "Created topic java-right." in java_says(place, tmp_path, "right")


@pytest.mark.xdist_group("java-tools")
@pytest.mark.parametrize("kind", ["audience", "key"])
def test_javas_login_handler_is_refused(place, tmp_path, kind):
    told = 'Error while executing topic command : {"status":"invalid_token"}'
    assert told in java_says(place, tmp_path, kind)


@pytest.mark.theirs_in_full
def test_librdkafka_logs_in_again_before_its_token_expires(place):
    asked: list[float] = []

    def short(config: str) -> tuple[str, float]:
        until = time.time() + 6
        asked.append(until)
        return token(exp=int(until)), until

    producer = confluent_kafka.Producer({
        "bootstrap.servers": place.bootstrap, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER", "oauth_cb": short,
    })  # fmt: skip
    failed: list[Any] = []
    until = time.monotonic() + 15
    while time.monotonic() < until:
        producer.produce(
            "again", b"v", on_delivery=lambda error, _: failed.extend([error] if error else [])
        )
        producer.poll(0.1)
    assert producer.flush(WAIT_S) == 0
    assert failed == []
    assert len(asked) > 2


# --- conversations, byte by byte ------------------------------------------------------------------


def said(token: str, wanted: str = "", more: str = "") -> tuple[Any, int]:
    return authenticate(f"n,{wanted},\x01auth=Bearer {token}{more}\x01\x01".encode())


def now(**more: Any) -> dict[str, Any]:
    moment = int(time.time())
    usual = {"sub": "alice", "scope": "all", "iat": moment - 5, "exp": moment + 600}
    said = {**usual, **at_moment(more)}
    return {name: value for name, value in said.items() if value is not None}


CONFIRMED = authenticate(b"\x01")
BEHIND = b'{"alg":"none"} x'
SHAKE = shake("OAUTHBEARER")
CLAIMS: dict[str, dict[str, Any]] = {
    "good": {}, "aud list": {"aud": ["x", "spare"]}, "aud none": {"aud": None}, "aud number":
    {"aud": 5}, "aud mixed": {"aud": ["kafka", 5]}, "aud empty": {"aud": []}, "iss none":
    {"iss": None}, "iss number": {"iss": 5}, "exp none": {"exp": None}, "exp text": {"exp": "1"},
    "exp fraction": {"exp": In(600.5)}, "exp negative": {"exp": -1},
    "exp within skew": {"exp": In(-5), "iat": 1}, "exp before iat":
    {"exp": In(-5)}, "iat none": {"iat": None}, "iat later":
    {"iat": In(500)}, "iat text": {"iat": "1"}, "iat negative": {"iat": -1},
    "nbf later": {"nbf": In(300)}, "nbf within skew":
    {"nbf": In(15)}, "nbf text": {"nbf": "x"}, "sub none": {"sub": None},
    "sub empty": {"sub": ""}, "sub blank": {"sub": " "}, "sub number": {"sub": 5},
    "sub padded": {"sub": " alice "}, "jti number": {"jti": 5}, "scope text": {"scope": "a b"},
    "scope empty": {"scope": ""}, "scope list": {"scope": ["a", "b"]},
    "scope twice": {"scope": ["a", "a"]}, "scope number": {"scope": 5},
}  # fmt: skip
SIGNED: dict[str, Callable[[], list[Any]]] = {
    **{
        name: lambda more=more: [SHAKE, said(token(**more)), CONFIRMED]  # type: ignore[misc]
        for name, more in CLAIMS.items()
    },
    "no kid": lambda: [SHAKE, said(signed(now(aud=AUDIENCE, iss=ISSUER), key_of("issuer"), None))],
    "unknown kid": lambda: [SHAKE, said(token(key_id="no-such")), CONFIRMED],
    "other key": lambda: [SHAKE, said(token(key="stranger")), CONFIRMED],
    "ps256": lambda: [SHAKE, said(signed(
        now(aud=AUDIENCE, iss=ISSUER), key_of("issuer"), "issuer", "PS256"))],
    "rs512": lambda: [SHAKE, said(signed(
        now(aud=AUDIENCE, iss=ISSUER), key_of("issuer"), "issuer", "RS512"))],
    "more header": lambda: [SHAKE, said(signed(
        now(aud=AUDIENCE, iss=ISSUER), key_of("issuer"), "issuer", nonce="n"))],
    "alg none": lambda: [SHAKE, said(unsecured(now(aud=AUDIENCE, iss=ISSUER))), CONFIRMED],
    "two parts": lambda: [SHAKE, said("a.b"), CONFIRMED],
    "one part": lambda: [SHAKE, said("abc"), CONFIRMED],
    "no json": lambda: [SHAKE, said("YQ.YQ.YQ"), CONFIRMED],
    "claims no object": lambda: [SHAKE, said(signed(b"[]", key_of("issuer"), "issuer"))],
    "twice": lambda: [SHAKE, said(signed(
        json.dumps(now(aud=AUDIENCE, iss=ISSUER))[:-1].encode() + b',"sub":"bob"}',
        key_of("issuer"), "issuer")), CONFIRMED],
    "dot behind": lambda: [SHAKE, said(token() + "."), CONFIRMED],
    "own id": lambda: [SHAKE, said(token(), "a=alice")],
    "another id": lambda: [SHAKE, said(token(), "a=bob")],
    "extensions": lambda: [SHAKE, said(token(), more="\x01traceId=1\x01b=2 3")],
    "refused and another": lambda: [SHAKE, said("abc"), said(token())],
    "refused, other words": lambda: [SHAKE, said("abc"), authenticate(b"\x01\x01")],
    "no message": lambda: [SHAKE, authenticate(b"n,,\x01\x01")],
    "empty": lambda: [SHAKE, authenticate(b"")],
    "confirmed at once": lambda: [SHAKE, CONFIRMED],
    "basic": lambda: [SHAKE, authenticate(b"n,,\x01auth=Basic abc\x01\x01")],
    "without headers": lambda: [
        shake("OAUTHBEARER", 0), f"n,,\x01auth=Bearer {token()}\x01\x01".encode()
    ],
    "refused without headers": lambda: [
        shake("OAUTHBEARER", 0), b"n,,\x01auth=Bearer abc\x01\x01", b"\x01"
    ],
}  # fmt: skip
LOOSE_CLAIMS: dict[str, dict[str, Any]] = {
    "good": {}, "scope lacks": {"scope": "some"}, "scope none": {"scope": None},
    "scope list": {"scope": ["x", " all"]}, "scope number": {"scope": 5}, "scope object":
    {"scope": {"all": 1}}, "sub none": {"sub": None}, "sub blank": {"sub": " "},
    "sub number": {"sub": 5}, "sub true": {"sub": True}, "sub list": {"sub": ["a"]},
    "sub padded": {"sub": " alice "}, "exp none": {"exp": None}, "exp text": {"exp": "5"},
    "exp within skew": {"exp": In(0), "iat": 1}, "exp large": {"exp": 1e300},
    "iat none": {"iat": None}, "iat later": {"iat": In(300)},
    "iat text": {"iat": "x"},
}  # fmt: skip
LOOSE: dict[str, Callable[[], list[Any]]] = {
    **{
        name: lambda more=more: [SHAKE, said(unsecured(now(**more))), CONFIRMED]  # type: ignore[misc]
        for name, more in LOOSE_CLAIMS.items()
    },
    "signed": lambda: [SHAKE, said(token(scope="all")), CONFIRMED],
    "with a signature": lambda: [SHAKE, said(unsecured(now()) + "YQ"), CONFIRMED],
    "two dots": lambda: [SHAKE, said("a..b"), CONFIRMED],
    "no json": lambda: [SHAKE, said("YQ.YQ."), CONFIRMED],
    "no alg": lambda: [SHAKE, said(f"{part({})}.{part(now())}."), CONFIRMED],
    "header a list": lambda: [SHAKE, said(f"{part([])}.{part(now())}."), CONFIRMED],
    "behind json": lambda: [
        SHAKE, said(f"{part(BEHIND)}.{part(now())}."), CONFIRMED
    ],
}  # fmt: skip
# What Apache Kafka said to each; SASL_RECORD=1 with its broker writes the file anew.
HEARD = Path(__file__).parent / "oauth_conversations.json"


def conversed(port: int, said: list[Any]) -> list[str]:
    raw = Raw(port)
    for each in said:
        if isinstance(each, bytes):
            raw.say(each)
        else:
            raw.ask(*each)
    raw.ask(*METADATA)
    lifetime = re.compile(r"'session_lifetime_ms': [1-9]\d*")
    told = (lifetime.sub("'session_lifetime_ms': N", str(each)) for each in raw.close())
    # Of whoever is let in nothing more is compared.
    return ["served" if "cluster_id" in each else each for each in told]


@pytest.mark.parametrize("name", SIGNED)
def test_a_conversation_goes_as_with_apache_kafka(place, name):
    compare(place, name, place.port, SIGNED[name]())


@pytest.mark.parametrize("name", LOOSE)
def test_one_about_unsecured_tokens_does_too(place, name):
    compare(place, f"unsecured: {name}", place.loose, LOOSE[name]())


def compare(place: Place, name: str, port: int, said: list[Any]) -> None:
    heard = json.loads(HEARD.read_text()) if HEARD.exists() else {}
    found = conversed(port, said)
    if "SASL_RECORD" in os.environ and not place.broker.is_kafkalite:
        HEARD.write_text(json.dumps(heard | {name: found}, indent=1, sort_keys=True) + "\n")
    else:
        assert found == heard[name]


def test_no_token_is_in_the_brokers_log(place):
    if place.broker.is_kafkalite:
        assert "eyJ" not in place.broker.log()
