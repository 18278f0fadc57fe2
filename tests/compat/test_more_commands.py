"""`kafkalite config`, `cluster` and `txn` on both brokers."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from kafkalite.cli.cluster import UNWELL
from kafkalite.cli.main import main
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic
from tests.compat.java_tools import JavaTools
from tests.compat.waiting import eventually

PATIENCE_S = 30

Run = Callable[..., Result]


@pytest.fixture
def run(broker: Broker) -> Run:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, [*words, "-b", broker.bootstrap])

    return run


def rows(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


# --- settings -------------------------------------------------------------------------------------


def test_settings_of_a_topic(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic()
    wanted = ("retention.ms=7777", "cleanup.policy=compact")
    tried = run("config", "set", "topic", topic, *wanted, "--dry-run")
    assert tried.stdout == f"{topic}: would be done\n"
    assert run("config", "set", "topic", topic, *wanted).exit_code == 0

    def of_topic() -> dict[str, tuple[object, object]]:
        found = rows(run("config", "get", "topic", topic, "-o", "json"))
        return {str(each["key"]): (each["value"], each["source"]) for each in found}

    both = {"retention.ms": ("7777", "topic"), "cleanup.policy": ("compact", "topic")}
    eventually(broker, lambda: both.items() <= of_topic().items())
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
    [told] = [each.result(PATIENCE_S) for each in asked.values()]
    everything = rows(run("config", "get", "topic", topic, "--all", "-o", "json"))
    assert {each["key"]: each["value"] for each in everything} == {
        name: each.value for name, each in told.items()
    }
    assert run("config", "unset", "topic", topic, "retention.ms").exit_code == 0
    eventually(broker, lambda: "retention.ms" not in of_topic())
    refused = run("config", "set", "topic", topic, "retention.ms=soon")
    assert (refused.exit_code, "INVALID_CONFIG" in refused.stderr) == (1, True)


def test_settings_of_brokers_and_groups(broker: Broker, run: Run) -> None:
    [one] = rows(run("config", "get", "broker", "1", "node.id", "-o", "json"))
    assert (one["value"], one["is_fixed_while_running"]) == ("1", True)
    group = f"settings-{uuid4()}"
    assert run("config", "set", "group", group, "consumer.session.timeout.ms=50000").exit_code == 0

    def is_set() -> bool:
        found = rows(run("config", "get", "group", group, "-o", "json"))
        return ("consumer.session.timeout.ms", "50000") in [
            (each["key"], each["value"]) for each in found
        ]

    eventually(broker, is_set)
    wrong = run("config", "get", "broker", "one")
    assert (wrong.exit_code, "'one' is no id of a broker" in wrong.output) == (2, True)


def test_a_setting_is_explained() -> None:
    said = CliRunner().invoke(main, ["config", "explain", "group.initial.rebalance.delay.ms"])
    lines = said.stdout.splitlines()
    assert lines[0].startswith("group.initial.rebalance.delay.ms (broker): ")
    assert "  in Apache Kafka '3000'" in lines
    same = CliRunner().invoke(main, ["config", "explain", "retention.ms"])
    assert "in Apache Kafka" not in same.stdout
    slip = CliRunner().invoke(main, ["config", "explain", "retention.mz"])
    assert (slip.exit_code, "did you mean retention.ms?" in slip.output) == (1, True)


# --- the cluster ----------------------------------------------------------------------------------


def test_the_cluster(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    make_topic(3)
    [one] = rows(run("cluster", "info", "-o", "json"))
    listed = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=PATIENCE_S)
    assert one["cluster"] == listed.cluster_id
    assert f"{one['host']}:{one['port']}" == broker.bootstrap
    # Other tests make topics and delete them meanwhile.
    assert isinstance(one["leads"], int)
    assert one["leads"] >= 3
    assert one["is_controller"] is True
    levels = {each["feature"]: each["level"]
              for each in rows(run("cluster", "features", "-o", "json"))}  # fmt: skip
    assert levels["transaction.version"] == 2
    well = run("cluster", "health")
    assert (well.exit_code, well.stdout.startswith("all is well: 1 brokers")) in (
        (0, True), (UNWELL, False)  # a topic that is being deleted
    )  # fmt: skip


def test_the_quorum_is_as_kafka_metadata_quorum_tells_it(
    broker: Broker, run: Run, tools: JavaTools
) -> None:
    tool = "org.apache.kafka.tools.MetadataQuorumCommand"
    words = ("--bootstrap-server", broker.bootstrap, "describe")
    told = dict(
        line.split(":", 1) for line in tools.run(tool, *words, "--status").splitlines()
    )
    [one] = rows(run("cluster", "quorum", "-o", "json"))
    head, *replicas = tools.run(tool, *words, "--replication").splitlines()
    assert head.split()[:4] == ["NodeId", "DirectoryId", "LogEndOffset", "Lag"]
    [replica] = [line.split() for line in replicas]
    assert one["role"] == replica[-1].lower() == "leader"
    assert [str(one["node"]), one["directory"]] == replica[:2]
    assert [str(one["node"]), str(one["epoch"])] == [
        told["LeaderId"].strip(), told["LeaderEpoch"].strip()
    ]  # fmt: skip
    # The log grows meanwhile.
    assert int(told["HighWatermark"]) <= int(str(one["high_watermark"]))
    assert int(str(one["log_end"])) <= int(replica[2])
    assert one["lag"] == 0
    table = run("cluster", "quorum").stdout.splitlines()
    assert table[0].startswith(f"leader {one['node']} since epoch {one['epoch']}, ")
    assert table[1].split()[:3] == ["NODE", "ROLE", "LOG"]


# --- transactions ---------------------------------------------------------------------------------


@pytest.fixture
def begun(broker: Broker, make_topic: MakeTopic) -> tuple[Producer, str, str]:
    """A transaction that has written a record and is under way."""
    topic, name = make_topic(), f"txn-{uuid4()}"
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "value")
    assert producer.flush(PATIENCE_S) == 0
    return producer, topic, name


def test_a_transaction_that_is_under_way(
    broker: Broker, run: Run, begun: tuple[Producer, str, str]
) -> None:
    producer, topic, name = begun
    listed = {each["transactional_id"]: each for each in rows(run("txn", "list", "-o", "json"))}
    assert listed[name]["state"] == "Ongoing"
    [described] = rows(run("txn", "describe", name, "-o", "json"))
    assert (described["state"], described["partitions"]) == ("Ongoing", [f"{topic}:0"])
    assert described["began"] is not None
    [one] = rows(run("txn", "open", f"{topic}:0", "-o", "json"))
    assert (one["begins"], one["producer_id"]) == (0, described["producer_id"])
    producer.commit_transaction(PATIENCE_S)
    eventually(broker, lambda: rows(run("txn", "open", f"{topic}:0", "-o", "json")) == [])
    gone = run("txn", "describe", f"no-{name}")
    assert (gone.exit_code, "TRANSACTIONAL_ID_NOT_FOUND" in gone.stderr) == (1, True)


def test_one_is_aborted_at_its_partition(
    broker: Broker, run: Run, begun: tuple[Producer, str, str]
) -> None:
    _, topic, _ = begun
    [one] = rows(run("txn", "open", f"{topic}:0", "-o", "json"))
    other = run("txn", "abort", f"{topic}:0", "--begins", "99", "--yes")
    assert (other.exit_code, "no open transaction begins at offset 99" in other.stderr) == (1, True)
    asked = run("txn", "abort", f"{topic}:0", "--begins", str(one["begins"]))
    assert (asked.exit_code, "--yes" in asked.output) == (2, True)
    done = run("txn", "abort", f"{topic}:0", "--begins", str(one["begins"]), "--yes")
    assert done.exit_code == 0, done.output
    eventually(broker, lambda: rows(run("txn", "open", f"{topic}:0", "-o", "json")) == [])
