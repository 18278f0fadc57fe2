"""Brokers of a test whose clients log in: who gets in, and what each client is told."""

import pytest

from kafkalite.client.addresses import addresses
from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.security.client_login import Login
from kafkalite.security.jaas import parse_entry
from kafkalite.testing.embedded import EmbeddedKafka

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"alice": 'se"cr\\et', "bob": "b"}


def secured(mechanism, users=USERS, **more):
    return EmbeddedKafka(security="sasl_plaintext", mechanism=mechanism, users=users, **more)


def ask(kafka, login):
    cluster = Cluster(addresses(kafka.bootstrap_servers), login=login, patience_s=5)
    try:
        return cluster.ask_any(MetadataRequest(topics=[])).cluster_id
    finally:
        cluster.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_user_gets_in_and_nobody_else(mechanism):
    with secured(mechanism, topics=["orders"]) as kafka:
        for user, password in USERS.items():
            assert ask(kafka, Login(mechanism, user, password))
        for login in (None, Login(mechanism, "alice", "no"), Login(mechanism, "eve", "b")):
            with pytest.raises(ClientFailed):
                ask(kafka, login)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_helpers_are_the_first_user_also_after_a_restart_and_a_reset(mechanism):
    with secured(mechanism) as kafka:
        for again in (lambda: None, kafka.restart, kafka.reset):
            again()
            kafka.produce("orders", "one")
            assert kafka.records("orders")[-1].text == "one"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("library", ["kafka-python", "aiokafka", "confluent", "java", "spark"])
def test_each_library_is_told_in_its_own_words(library, mechanism):
    with secured(mechanism) as kafka:
        told = kafka.client_config(library)
    shown = " ".join(told)
    if library in ("java", "spark"):
        prefix = "kafka." if library == "spark" else ""
        entry = parse_entry(told[f"{prefix}sasl.jaas.config"])
        assert entry.options == {"username": "alice", "password": USERS["alice"]}
        assert told[f"{prefix}sasl.mechanism"] == mechanism
    else:
        assert USERS["alice"] in told.values()
        assert "user" in shown
    assert "SASL_PLAINTEXT" in told.values()


def test_a_stock_client_gets_in_with_what_it_is_told():
    import confluent_kafka

    with secured("SCRAM-SHA-512", topics=["orders"]) as kafka:
        producer = confluent_kafka.Producer(kafka.client_config("confluent"))
        producer.produce("orders", b"v")
        assert producer.flush(10) == 0
        assert kafka.records("orders", count=1).values == [b"v"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"mechanism": "PLAIN"}, "need security"),
        ({"users": {"a": "b"}}, "need security"),
        ({"security": "sasl"}, "expected \"sasl_plaintext\""),
        ({"security": "sasl_plaintext", "users": {"a": "b"}}, "mechanism=None"),
        ({"security": "sasl_plaintext", "mechanism": "GSSAPI", "users": {"a": "b"}}, "GSSAPI"),
        ({"security": "sasl_plaintext", "mechanism": "PLAIN"}, "users: expected"),
        ({"security": "sasl_plaintext", "mechanism": "PLAIN", "users": {"a": ""}}, "users: "),
        ({"security": "sasl_plaintext", "mechanism": "PLAIN", "users": {"a": "b"}, "brokers": 2},
         "brokers=2"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_at_once(options, why):
    with pytest.raises(ValueError, match=why):
        EmbeddedKafka(**options)


def test_no_password_is_shown():
    kafka = secured("PLAIN", {"alice": "hunter2"})
    assert "hunter2" not in repr(kafka)
    assert "hunter2" not in repr(kafka._plan.secured)
