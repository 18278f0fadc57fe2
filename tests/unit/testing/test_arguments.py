"""What people write for folders, settings and topics, and what is made of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource
from kafka import KafkaConsumer

from kafkalite.testing import arguments
from kafkalite.testing.embedded import EmbeddedKafka


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (True, "true"),
        (False, "false"),
        (0.5, "0.5"),
        ("x", "x"),
        ("", ""),
        (Path("/a/b"), "/a/b"),
        (["compact", "delete"], "compact,delete"),
        (("a", 1), "a,1"),
    ],
)
def test_values_are_the_texts_of_a_properties_file(value, text) -> None:
    assert arguments.texts("settings", {"name": value}) == {"name": text}


def test_none_leaves_a_setting_as_it_is() -> None:
    assert arguments.texts("settings", {"name": None, "other": 1}) == {"other": "1"}


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"settings": {"name": b"x"}}, "settings['name']=b'x': expected a str, a number"),
        ({"settings": {"name": {}}}, "settings['name']={}: expected a str"),
        ({"settings": {3: "x"}}, "settings: 3 is no name of a setting"),
        ({"settings": "name=x"}, "settings='name=x': expected a mapping"),
        ({"data_dir": 3}, "expected str, bytes or os.PathLike"),
        ({"data_dir": b"/x"}, "data_dir=b'/x': expected a str or a pathlib.Path"),
        ({"data_dir": ""}, "data_dir is empty"),
        ({"data_dir": "a,b"}, "a,b': a broker's directory has no comma"),
        ({"data_dir": "a "}, "a ': a broker's directory has no comma, and ends in no blank"),
        ({"host": None}, "host=None: expected a name or an address"),
        ({"host": 5}, "host=5: expected a name or an address"),
        ({"host": b"localhost"}, "host=b'localhost': expected a name or an address"),
        ({"brokers": 3, "settings": {"node.id": 7}}, "would be the id of all 3 brokers"),
        ({"brokers": 2, "settings": {"broker.id": 7}}, "would be the id of all 2 brokers"),
        ({"topics": [3]}, "topics: 3 is no name of a topic"),
        ({"topics": "orders"}, "topics='orders': expected {'orders': 1} or ['orders']"),
        ({"topics": {"orders": "3"}}, "topics['orders']='3': expected a whole number"),
        ({"topics": {"orders": 0}}, "topics['orders']=0: a topic has at least one partition"),
        ({"brokers": 0}, "brokers=0: expected 1 to 100"),
        ({"brokers": -1}, "brokers=-1: expected 1 to 100"),
        ({"brokers": True}, "brokers=True: expected a whole number"),
        ({"brokers": "3"}, "brokers='3': expected a whole number"),
        ({"brokers": 3, "racks": ["a", "b"]}, "3 brokers have 3 racks"),
        ({"brokers": 2, "racks": ["a", None]}, "expected a list with a name"),
        ({"racks": "a"}, "expected a list with a name"),
        ({"racks": ["a"], "settings": {"broker.rack": "b"}}, "both say where brokers are"),
        ({"port": 70_000}, "port=70000: expected 0 (one that is free) to 65535"),
    ],
)
def test_what_is_not_understood_is_named(given, error) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(error)):
        EmbeddedKafka(**given)


def test_a_broker_takes_them(tmp_path: Path) -> None:
    kafka = EmbeddedKafka(
        data_dir=tmp_path / "data",
        settings={"num.partitions": 3, "auto.create.topics.enable": False},
        topics=["orders"],
    )
    with kafka:
        kafka.create_topic("kept", 2, {"retention.ms": -1, "cleanup.policy": ["compact", "delete"]})
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        found = admin.list_topics(timeout=10).topics
        assert {name: len(each.partitions) for name, each in found.items()} == {
            "orders": 3,
            "kept": 2,
        }
        [described] = admin.describe_configs([ConfigResource("topic", "kept")]).values()
        configs = described.result(10)
        assert configs["retention.ms"].value == "-1"
        assert configs["cleanup.policy"].value == "compact,delete"
    assert (tmp_path / "data" / "orders-0").is_dir()


def test_directories_of_the_settings_are_directories(tmp_path: Path) -> None:
    both = [tmp_path / "one", tmp_path / "two"]
    with EmbeddedKafka(settings={"log.dirs": both}, topics=["orders"]):
        assert all(path.is_dir() for path in both)
    with EmbeddedKafka(settings={"log.dir": tmp_path / "three"}):
        assert (tmp_path / "three" / "meta.properties").exists()


def test_data_is_in_one_place_and_each_brokers_in_its_own(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both say where data lies"):
        EmbeddedKafka(tmp_path, settings={"log.dirs": tmp_path})
    with pytest.raises(ValueError, match="would be the directory of all 3 brokers"):
        EmbeddedKafka(settings={"log.dirs": tmp_path}, brokers=3)


@pytest.mark.parametrize("host", ["localhost", "::1", "[::1]", "0.0.0.0"])
def test_a_host_is_an_address_or_a_name(host: str) -> None:
    with EmbeddedKafka(host=host, topics=["orders"]) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        assert "orders" in admin.list_topics(timeout=10).topics


@pytest.mark.parametrize("name", [None, 5, b"t", ["t"]])
def test_a_topic_has_a_name(name) -> None:
    with EmbeddedKafka() as kafka, pytest.raises(TypeError, match="is no name of a topic"):
        kafka.create_topic(name)


@pytest.mark.parametrize(
    "given",
    [
        {"data_dir": "data"},
        {"data_dir": Path("data"), "brokers": 2},
        {"settings": {"log.dirs": "data/1, data/2"}},
        {"settings": {"log.dir": Path("data")}},
        {"settings": {"log.dirs": ["data"], "metadata.log.dir": "data"}},
    ],
)
def test_a_program_may_go_elsewhere(given, tmp_path: Path, monkeypatch) -> None:
    """As fixtures do for each test; the data stays where it began."""
    for folder in ("begun", "elsewhere", "further"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "begun")
    kafka = EmbeddedKafka(**given)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        monkeypatch.chdir(tmp_path / "further")
        kafka.create_topic("t", 4)
        producer.produce("t", "kept", partition=3)
        assert producer.flush(10) == 0
    assert list((tmp_path / "begun" / "data").rglob("t-3/*.log"))
    assert [*(tmp_path / "elsewhere").iterdir(), *(tmp_path / "further").iterdir()] == []
    with kafka:
        consumer = KafkaConsumer(
            "t", bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        )  # fmt: skip
        assert next(consumer).value == b"kept"
        consumer.close()


def test_every_address_of_the_machine_is_reached_by_its_name() -> None:
    with EmbeddedKafka(host="") as kafka:
        assert kafka.bootstrap_servers == f"localhost:{kafka.port}"
        KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers).close()


def test_the_id_of_a_broker_has_two_names() -> None:
    for name in ("node.id", "broker.id"):
        with EmbeddedKafka(settings={name: 7}) as kafka:
            kafka.create_topic("t")
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
            assert list(admin.list_topics(timeout=10).brokers) == [7]
