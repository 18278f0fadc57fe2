"""Delegation tokens, on both brokers: asked for in all versions, by the tool, and shown at logins.
"""

from __future__ import annotations

import json
import os
import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kafkalite.client.addresses import addresses
from kafkalite.client.cluster import Cluster
from kafkalite.protocol.messages import (
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kafkalite.security.acl import acl_of
from tests.compat import brokers, transcript
from tests.compat.brokers import Broker, free_ports
from tests.compat.sasl_talk import Raw, shake
from tests.compat.sasl_talk import token as authenticate
from tests.compat.waiting import eventually
from tests.sampled import sampled

TOOL = transcript.class_of("kafka-delegation-tokens")
TOPICS = "org.apache.kafka.tools.TopicCommand"
MODULE = "org.apache.kafka.common.security.{}LoginModule required"
PLAIN = MODULE.format("plain.Plain")
SCRAM = MODULE.format("scram.Scram")
PASSWORD = "hunter2"
SETTLES_S = 1.0  # until all of Apache Kafka knows of a token
SECRET = "the-secret-of-the-brokers"
PEOPLE = ("alice", "bob", "carol", "root")


class Person(Raw):
    """Somebody who has logged in, and hears answers as they are."""

    def __init__(self, port: int, name: str) -> None:
        super().__init__(port)
        self.ask(*shake("PLAIN")).ask(*authenticate(f"\0{name}\0{PASSWORD}".encode()))

    def _plain(self, response: Any) -> Any:
        return response

    def answer(self, request: Any, version: int) -> Any:
        return self.ask(request, version).heard[-1]


class Place:
    """A broker with a listener that has its clients log in, beside one that does not."""

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker, self.port = broker, port
        self.bootstrap = f"127.0.0.1:{port}"

    def settle(self) -> None:
        if not self.broker.is_kafkalite:
            time.sleep(SETTLES_S)


def placed(kind: str, folder: Path, **more: str) -> Place:
    plain, port, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SECURE://127.0.0.1:{port}"
    users = " ".join(f'user_{each}="{PASSWORD}"' for each in PEOPLE)
    settings = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.secure.plain.sasl.jaas.config": f"{PLAIN} {users};",
        "listener.name.secure.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
        "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root;User:ANONYMOUS",
        "delegation.token.secret.key": SECRET,
        **more,
    }
    if kind != brokers.KAFKALITE:
        settings["listeners"] += f",CONTROLLER://127.0.0.1:{controller}"
        settings["controller.quorum.voters"] = f"1@127.0.0.1:{controller}"
    return Place(brokers.start(kind, folder, settings, port=plain), port)


@pytest.fixture(scope="module")
def place(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = placed(broker_kind, tmp_path_factory.mktemp("tokens"))
    cluster = Cluster(addresses(found.broker.bootstrap))
    rules = [acl_of("User:alice create_tokens user User:bob"),
             acl_of("User:carol describe_tokens user User:bob"),
             acl_of("User:alice create topic *")]  # fmt: skip
    cluster.ask_any(CreateAclsRequest(creations=[
        CreateAclsRequest.Creation(
            resource_type=each.kind, resource_name=each.name, resource_pattern_type=each.pattern,
            principal=each.principal, host=each.host, operation=each.operation,
            permission_type=each.permission,
        )
        for each in rules
    ]))  # fmt: skip
    cluster.close()
    found.settle()
    yield found
    found.broker.stop()


# --- requests in all versions ---------------------------------------------------------------------


Step = tuple[str, Callable[[dict[str, Any]], Any], int]


def create(to: str, **named: Any) -> Callable[[dict[str, Any]], Any]:
    """Keeps the token under a name."""
    renewers = [_named(CreateDelegationTokenRequest.Renewer, each) for each in
                named.pop("renewers", ())]
    named.setdefault("max_lifetime_ms", -1)
    return lambda known: (to, CreateDelegationTokenRequest(renewers=renewers, **named))


def renew(of: str, period_ms: int = -1) -> Callable[[dict[str, Any]], Any]:
    return lambda known: (None, RenewDelegationTokenRequest(
        hmac=known.get(of, b"x" * 64), renew_period_ms=period_ms))  # fmt: skip


def expire(of: str, period_ms: int = -1) -> Callable[[dict[str, Any]], Any]:
    return lambda known: (None, ExpireDelegationTokenRequest(
        hmac=known.get(of, b"x" * 64), expiry_time_period_ms=period_ms))  # fmt: skip


def describe(*owners: str, all_of_them: bool = False) -> Callable[[dict[str, Any]], Any]:
    asked = [_named(DescribeDelegationTokenRequest.Owner, each) for each in owners]
    return lambda known: (None, DescribeDelegationTokenRequest(
        owners=None if all_of_them else asked))  # fmt: skip


def _named(kind: type[Any], principal: str) -> Any:
    principal_type, _, name = principal.partition(":")
    return kind(principal_type=principal_type, principal_name=name)


EVERYTHING = describe(all_of_them=True)
BOBS = {"owner_principal_type": "User", "owner_principal_name": "bob"}
STORIES: dict[str, list[Step]] = {
    **{
        f"version {version}": [
            ("alice", create("t", renewers=["User:carol"]), min(version, 3)),
            ("alice", describe("User:alice"), min(version, 3)),
            ("alice", renew("t", 60_000), min(version, 2)),
            ("carol", expire("t", 30_000), min(version, 2)),
            ("alice", describe("User:alice"), min(version, 3)),
            ("alice", expire("t"), min(version, 2)),
            ("alice", expire("t"), min(version, 2)),
        ]
        for version in (1, 2, 3)
    },
    "renewers": [
        ("alice", create("t", renewers=["Group:x"]), 3),
        ("alice", create("t", renewers=["User:bob", "User:bob"]), 3),
        ("bob", describe("User:bob"), 3), ("bob", renew("t"), 2), ("carol", renew("t"), 2),
        ("carol", expire("t"), 2), ("root", renew("t"), 2), ("bob", expire("t"), 2),
    ],
    "another owner": [
        ("alice", create("t", **BOBS), 3), ("carol", create("u", **BOBS), 3),
        ("alice", EVERYTHING, 3), ("bob", EVERYTHING, 3), ("carol", EVERYTHING, 3),
        ("root", EVERYTHING, 3), ("root", describe("User:alice"), 3), ("root", describe(), 3),
        ("carol", describe("User:nobody"), 3), ("alice", renew("t"), 2), ("bob", expire("t"), 2),
    ],
    "owners that are none": [
        ("alice", create("t", owner_principal_type=None, owner_principal_name="bob"), 3),
        ("alice", create("t", owner_principal_type="User", owner_principal_name=None), 3),
        ("alice", create("u", owner_principal_type="Group", owner_principal_name="x"), 3),
        ("alice", expire("t"), 2),
    ],
    "times": [
        ("alice", create("t", max_lifetime_ms=600_000), 3), ("alice", renew("t", 2**62), 2),
        ("alice", renew("t", -5), 2), ("alice", renew("t", 0), 2), ("alice", expire("t", 0), 2),
        ("alice", renew("t"), 2), ("alice", expire("t", 5), 2), ("alice", expire("t"), 2),
        ("alice", create("u", max_lifetime_ms=2**63 - 1), 3), ("alice", expire("u"), 2),
        ("alice", create("v", max_lifetime_ms=0), 3), ("alice", expire("v", 2**63 - 1), 2),
        ("alice", expire("v", -(2**63)), 2),
    ],
    "guesses": [("alice", renew("nothing"), 2), ("alice", expire("nothing"), 2)],
}  # fmt: skip
# What Apache Kafka said to each; SASL_RECORD=1 with its broker writes the file anew.
HEARD = Path(__file__).parent / "token_conversations.json"


def told(story: list[Step], place: Place, port: int) -> list[str]:
    people: dict[str, Person] = {}
    known: dict[str, Any] = {}
    said = []
    for who, make, version in story:
        if who not in people:
            people[who] = Person(port, who)
        person = people[who]
        name, request = make(known)
        answer = person.answer(request, version)
        if name is not None and getattr(answer, "hmac", None):
            known[name] = bytes(answer.hmac)
        said.append(f"{who}: {type(request).__name__} v{version}: {_shown(answer)}")
        if answer.error_code == 0 and not isinstance(request, DescribeDelegationTokenRequest):
            place.settle()
            time.sleep(0.005)  # what expires at once has expired a millisecond later
    for person in people.values():
        person.close()
    return said


def _shown(answer: Any) -> str:
    """Without what differs from one time to the next."""
    if isinstance(answer, str):
        return answer
    shown = {each: getattr(answer, each) for each in answer.__slots__ if each[0] != "_"}
    for name, value in shown.items():
        if "timestamp" in name and value > 0:
            far = value - time.time() * 1000
            shown[name] = "the last" if far > 10**15 else f"in {round(far / 15_000) * 15} s"
        elif name in ("token_id", "hmac") and value:
            shown[name] = f"{len(value)}"
        elif isinstance(value, list):
            shown[name] = sorted(map(_shown, value))
    return str(shown)


@pytest.mark.parametrize("name", sampled(STORIES, "version 3", "renewers"))
def test_a_story_goes_as_with_apache_kafka(place, name):
    compare(place, name, place.port)


def clear(port: int) -> None:
    """Ends what other tests left: a story begins where nobody has a token."""
    for name in ("alice", "bob"):
        person = Person(port, name)
        found = person.answer(DescribeDelegationTokenRequest(owners=None), 2)
        for each in getattr(found, "tokens", ()):
            person.answer(
                ExpireDelegationTokenRequest(hmac=each.hmac, expiry_time_period_ms=-1), 2
            )
        person.close()


def compare(place: Place, name: str, port: int, story: str = "") -> None:
    clear(port)
    place.settle()
    heard = json.loads(HEARD.read_text()) if HEARD.exists() else {}
    found = told(STORIES[story or name], place, port)
    if "SASL_RECORD" in os.environ and not place.broker.is_kafkalite:
        HEARD.write_text(json.dumps(heard | {name: found}, indent=1, sort_keys=True) + "\n")
    else:
        assert found == heard[name]


def test_without_a_secret_each_is_refused(broker_kind, tmp_path):
    place = placed(broker_kind, tmp_path, **{"delegation.token.secret.key": ""})
    try:
        compare(place, "without a secret", place.port, "version 3")
    finally:
        place.broker.stop()


# --- the tool, and whoever logs in with what it made ----------------------------------------------


def config(folder: Path, name: str, mechanism: str, jaas: str) -> str:
    path = folder / f"{name}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={jaas}\ndefault.api.timeout.ms=8000\nrequest.timeout.ms=5000\n"
    )
    return str(path)


def person(folder: Path, name: str) -> str:
    return config(folder, name, "PLAIN", f'{PLAIN} username="{name}" password="{PASSWORD}";')


def bearer(folder: Path, mechanism: str, token_id: str, hmac: str) -> str:
    login = f'username="{token_id}" password="{hmac}" tokenauth="true"'
    name = sha256(hmac.encode()).hexdigest()[:6]
    return config(folder, f"token-{mechanism}-{name}", mechanism, f"{SCRAM} {login};")


def made(place: Place, name: str) -> tuple[str, str]:
    """The id and the HMAC of a new token."""
    someone = Person(place.port, name)
    answer = someone.answer(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
    someone.close()
    place.settle()
    return answer.token_id, b64encode(bytes(answer.hmac)).decode()


@pytest.mark.xdist_group("java-tools")
def test_the_tool_makes_shows_renews_and_ends_a_token(place, tools, tmp_path):
    words = ("--bootstrap-server", place.bootstrap, "--command-config", person(tmp_path, "alice"))
    said = tools.run(
        TOOL, *words, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
    )
    found = re.search(r"^([\w-]{22}) +(\S+) User:alice +User:alice +\[User:bob\]", said, re.M)
    assert found is not None, said
    token_id, hmac = found.groups()
    assert f"Created delegation token with tokenId : {token_id}" in said
    mine = (*words, "--describe", "--owner-principal", "User:alice")
    eventually(place.broker, lambda: hmac in tools.run(TOOL, *mine))
    assert "Total number of tokens : 0" in tools.run(TOOL, *words, "--describe"), "of no owner"
    for act, period in (("renew", "renew-time-period"), ("expire", "expiry-time-period")):
        said = tools.run(TOOL, *words, f"--{act}", "--hmac", hmac, f"--{period}", "-1")
        assert f"Completed {act} operation. New expiry date : 20" in said
        place.settle()
    eventually(place.broker, lambda: hmac not in tools.run(TOOL, *mine))
    said = tools.run(TOOL, *words, "--renew", "--hmac", hmac, "--renew-time-period", "-1")
    assert "DelegationTokenNotFoundException: Delegation Token is not found on server." in said


@pytest.mark.xdist_group("java-tools")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_java_client_logs_in_with_a_token(place, tools, tmp_path, mechanism):
    token_id, hmac = made(place, "alice")
    words = ("--bootstrap-server", place.bootstrap, "--command-config")
    right = bearer(tmp_path, mechanism, token_id, hmac)
    topic = f"by-token-{mechanism}"
    said = tools.run(TOPICS, *words, right, "--create", "--topic", topic)
    assert f"Created topic {topic}." in said, "alice may, and whoever has her token"
    said = tools.run(TOOL, *words, right, "--create", "--max-life-time-period", "-1")
    assert "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels" in said
    wrong = bearer(tmp_path, mechanism, token_id, "abc" + hmac[3:])
    strange = bearer(tmp_path, mechanism, "A" * 22, "xyz" + hmac[3:])
    for each in (wrong, strange):
        said = tools.run(TOPICS, *words, each, "--list")
        assert f"due to invalid credentials with SASL mechanism {mechanism}" in said


@pytest.mark.xdist_group("java-tools")
def test_a_token_that_ended_lets_nobody_in(place, tools, tmp_path):
    token_id, hmac = made(place, "alice")
    words = ("--bootstrap-server", place.bootstrap, "--command-config")
    alice = person(tmp_path, "alice")
    by_token = bearer(tmp_path, "SCRAM-SHA-256", token_id, hmac)
    tools.run(TOOL, *words, alice, "--expire", "--hmac", hmac, "--expiry-time-period", "-1")

    def is_refused() -> bool:
        said = tools.run(TOPICS, *words, by_token, "--list")
        return "due to invalid credentials" in said

    eventually(place.broker, is_refused)


# --- the metadata log -----------------------------------------------------------------------------


def test_tokens_go_from_one_broker_to_the_other_and_back(tmp_path):
    kept: list[str] = []
    for kind in (brokers.KAFKALITE, brokers.APACHE_KAFKA, brokers.KAFKALITE):
        place = placed(kind, tmp_path)
        try:
            place.settle()
            someone = Person(place.port, "alice")
            listed = someone.answer(DescribeDelegationTokenRequest(owners=None), 3)
            assert sorted(each.token_id for each in listed.tokens) == sorted(kept)
            answer = someone.answer(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
            kept.append(answer.token_id)
            place.settle()
            for each in listed.tokens:
                renewal = RenewDelegationTokenRequest(hmac=each.hmac, renew_period_ms=-1)
                assert someone.answer(renewal, 2).error_code == 0
            someone.close()
        finally:
            place.broker.stop()


def test_no_secret_is_in_the_brokers_log(place):
    if place.broker.is_kafkalite:
        _, hmac = made(place, "alice")
        assert hmac not in place.broker.log()
        assert SECRET not in place.broker.log()
