"""Brokers of a test that do not let everybody in: who gets in, and what each client is told."""

import asyncio
import gc
import stat
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka as kafka_python
import pytest

from kafkalite.client.addresses import addresses
from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.security.client_login import Login, Security
from kafkalite.security.jaas import parse_entry
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"alice": 'se"cr\\et', "bob": "b"}


def secured(mechanism, users=USERS, **more):
    return EmbeddedKafka(security="sasl_plaintext", mechanism=mechanism, users=users, **more)


def ask(kafka, login):
    security = Security(login=login)
    cluster = Cluster(addresses(kafka.bootstrap_servers), security=security, patience_s=5)
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
        ({"client_certificates": ["a"]}, "need security"),
        ({"security": "sasl"}, "expected one of ssl, sasl_ssl, sasl_plaintext"),
        ({"security": "ssl", "users": {"a": "b"}}, "nobody log in"),
        ({"security": "ssl", "client_certificates": ["../a"]}, "a name has"),
        ({"security": "ssl", "client_certificates": ["kafkalite"]}, "brokers are to each other"),
        ({"security": "sasl_plaintext", "mechanism": "PLAIN", "users": {"a": "b"},
          "client_certificates": ["a"]}, "need security="),
        ({"security": "sasl_plaintext", "users": {"a": "b"}}, "mechanism=None"),
        ({"security": "sasl_plaintext", "mechanism": "GSSAPI", "users": {"a": "b"}}, "GSSAPI"),
        ({"security": "sasl_plaintext", "mechanism": "PLAIN"}, "users: expected"),
        ({"security": "sasl_plaintext", "mechanism": "PLAIN", "users": {"a": ""}}, "users: "),
        ({"security": "sasl_plaintext", "mechanism": "PLAIN", "users": {"kafkalite": "b"}},
         "brokers are to each other"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_at_once(options, why):
    with pytest.raises(ValueError, match=why):
        EmbeddedKafka(**options)


def test_no_password_is_shown():
    kafka = secured("PLAIN", {"alice": "hunter2"})
    assert "hunter2" not in repr(kafka)
    assert "hunter2" not in repr(kafka._plan.secured)


# --- with TLS -------------------------------------------------------------------------------------

ENCRYPTED: dict[str, dict[str, Any]] = {
    "ssl": {"security": "ssl"},
    "mutual": {"security": "ssl", "client_certificates": ["alice", "bob"]},
    "both": {"security": "sasl_ssl", "mechanism": "SCRAM-SHA-256", "users": USERS},
    "all": {
        "security": "sasl_ssl", "mechanism": "PLAIN", "users": USERS,
        "client_certificates": ["alice"],
    },
}  # fmt: skip


# aiokafka leaves transports to the garbage collector, and kafka-python sockets when it is kept out.
LEAVES_SOCKETS = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="module", params=list(ENCRYPTED))
def encrypted(request):
    with EmbeddedKafka(**ENCRYPTED[request.param], topics=["orders"]) as kafka:
        yield kafka


def test_kafka_python_gets_in_with_what_it_is_told(encrypted):
    told = encrypted.client_config("kafka-python")
    producer = kafka_python.KafkaProducer(**told)
    at = producer.send("orders", b"python").get(10)
    producer.close()
    consumer = kafka_python.KafkaConsumer(**told, consumer_timeout_ms=10_000)
    place = kafka_python.TopicPartition("orders", at.partition)
    consumer.assign([place])
    consumer.seek(place, at.offset)
    assert next(consumer).value == b"python"
    consumer.close()


@LEAVES_SOCKETS
def test_aiokafka_gets_in_with_what_it_is_told(encrypted):
    async def write():
        told = encrypted.client_config("aiokafka")
        async with aiokafka.AIOKafkaProducer(**told) as producer:
            return await producer.send_and_wait("orders", b"aio")

    at = asyncio.run(asyncio.wait_for(write(), 20))
    assert encrypted.records("orders")[at.offset].value == b"aio"
    gc.collect()  # of the transports that it leaves


def test_confluent_and_the_helpers_get_in(encrypted):
    producer = confluent_kafka.Producer(encrypted.client_config("confluent"))
    producer.produce("orders", b"rdkafka")
    assert producer.flush(10) == 0
    assert encrypted.records("orders")[-1].value == b"rdkafka"
    encrypted.produce("orders", "own")
    assert encrypted.records("orders")[-1].text == "own"


@LEAVES_SOCKETS
def test_nobody_gets_in_in_the_open_or_by_another_authority(encrypted):
    for told in (
        {"bootstrap_servers": encrypted.bootstrap_servers},
        {**encrypted.client_config("kafka-python"), "ssl_cafile": None},
    ):
        with pytest.raises(kafka_python.errors.KafkaError):
            kafka_python.KafkaProducer(**told, bootstrap_timeout_ms=1_000)
    gc.collect()


@LEAVES_SOCKETS
def test_who_shows_no_certificate_stays_outside():
    with EmbeddedKafka(security="ssl", client_certificates=["alice"]) as kafka:
        told = kafka.client_config("kafka-python")
        del told["ssl_certfile"], told["ssl_keyfile"]
        with pytest.raises(kafka_python.errors.KafkaError):
            kafka_python.KafkaProducer(**told, bootstrap_timeout_ms=1_000)
    gc.collect()


def test_files_are_their_owners_alone_and_gone_at_the_end():
    kafka = EmbeddedKafka(security="ssl", client_certificates=["alice"])
    for end in (kafka.stop, lambda: kafka.stop(unclean=True), kafka.stop):
        kafka.start()
        folder = Path(kafka.client_config("java")["ssl.truststore.location"]).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
        assert modes == {"ca.pem": 0o600, "client-alice.pem": 0o600}
        end()
        assert not folder.exists()


def test_files_are_gone_after_a_start_that_failed():
    kafka = EmbeddedKafka(security="ssl", settings={"num.partitions": "many"})
    with pytest.raises(BrokerFailed):
        kafka.start()
    secured = kafka._plan.secured
    assert secured is not None
    assert secured.keys is not None
    assert not secured.keys.folder.exists()


def test_clients_know_the_same_authority_after_a_restart():
    with EmbeddedKafka(security="ssl", topics=["orders"]) as kafka:
        producer = confluent_kafka.Producer(kafka.client_config("confluent"))
        for value in (b"one", b"two"):
            producer.produce("orders", value)
            assert producer.flush(20) == 0
            kafka.restart()
        assert kafka.records("orders").values == [b"one", b"two"]


@pytest.mark.parametrize("how", ["mutual", "both"])
def test_rules_hold_for_each_user(how):
    name = "User:CN={}" if how == "mutual" else "User:{}"
    rules = [f"{name.format('alice')} all topic *", f"{name.format('bob')} read topic orders"]
    settings = {"auto.create.topics.enable": False}
    with EmbeddedKafka(
        **ENCRYPTED[how], acls=rules, settings=settings, topics=["orders"]
    ) as kafka:
        kafka.produce("orders", "one")
        said = []
        for user in ("alice", "bob"):
            producer = confluent_kafka.Producer(kafka.client_config("confluent", user))
            producer.produce("orders", b"two", on_delivery=lambda error, _: said.append(error))
            producer.flush(10)
        assert said[0] is None
        assert said[1].code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(ValueError, match="expected one of alice, bob"):
            kafka.client_config("java", "eve")


def test_brokers_with_certificates_ask_each_other_whatever_the_rules():
    rules = ["User:CN=alice all topic *", "User:CN=alice all transactional_id *"]
    with EmbeddedKafka(
        security="ssl", client_certificates=["alice"], acls=rules, brokers=3, topics={"t": 6}
    ) as kafka:
        told = {**kafka.client_config("confluent"), "transactional.id": "t"}
        producer = confluent_kafka.Producer(told)
        producer.init_transactions(20)
        producer.begin_transaction()
        for partition in range(6):
            producer.produce("t", b"x", partition=partition)
        producer.commit_transaction(20)
        assert len(kafka.records("t", count=6)) == 6
