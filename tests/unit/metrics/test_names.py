"""Series of a cluster that is made up, in the three vocabularies."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.metrics_core import Metric

from kafkalite.client.survey import Broker, Group, Member, Partition, Survey, Topic
from kafkalite.metrics.exporter import exporter_families
from kafkalite.metrics.kminion import kminion_families
from kafkalite.metrics.lag import lag_families
from kafkalite.metrics.lag_seconds import Ends

Row = tuple[str, ...]


def found() -> Survey:
    orders = Topic("orders", False, {
        0: Partition(leader=1, replicas=[1, 2], in_sync=[1, 2], begins=10, ends=100),
        1: Partition(leader=2, replicas=[1, 2], in_sync=[2], begins=0, ends=50),
        2: Partition(leader=-1, replicas=[3], in_sync=[]),
    }, "delete")  # fmt: skip
    readers = Group(
        "readers", 1, "classic", "consumer", "range", "Stable",
        [Member("a", "/h", {"orders": [0, 1]}), Member("b", "/h", {})],
        {("orders", 0): 90, ("gone", 0): 5},
    )  # fmt: skip
    return Survey(
        at_ms=1_000_000, cluster_id="here", controller=2,
        brokers=[Broker(1, "one", 9092, "east"), Broker(2, "two", 9093, None)],
        topics={"orders": orders}, groups={"readers": readers},
        log_bytes={(1, "orders", 0): 700, (2, "orders", 0): 700, (2, "orders", 1): 5},
    )  # fmt: skip


def rows(families: Iterable[Metric], name: str) -> dict[Row, float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def test_kafka_exporters_names() -> None:
    page = exporter_families(found()).all()
    assert rows(page, "kafka_brokers") == {(): 2}
    assert rows(page, "kafka_broker_info") == {("1", "one:9092"): 1, ("2", "two:9093"): 1}
    prefix = "kafka_topic_partition_"
    ends = rows(page, f"{prefix}current_offset")
    assert ends == {("orders", "0"): 100, ("orders", "1"): 50}, "nobody told of the third"
    preferred = rows(page, f"{prefix}leader_is_preferred")
    assert preferred == {("orders", "0"): 1, ("orders", "1"): 0, ("orders", "2"): 0}
    under = rows(page, f"{prefix}under_replicated_partition")
    assert under == {("orders", "0"): 0, ("orders", "1"): 1, ("orders", "2"): 1}
    lag = rows(page, "kafka_consumergroup_lag")
    assert lag == {("readers", "orders", "0"): 10, ("readers", "orders", "1"): -1}
    assert rows(page, "kafka_consumergroup_lag_sum") == {("readers", "orders"): 10}
    assert rows(page, "kafka_consumergroup_members") == {("readers",): 2}


def test_kminions_names() -> None:
    page = kminion_families(found()).all()
    prefix = "kminion_kafka_"
    assert rows(page, f"{prefix}cluster_info") == {("here", "", "2", "2"): 1}
    assert rows(page, f"{prefix}broker_info") == {
        ("1", "one", "9092", "east", "false"): 1, ("2", "two", "9093", "", "true"): 1,
    }  # fmt: skip
    assert rows(page, f"{prefix}broker_log_dir_size_total_bytes") == {
        ("1", "one", "9092", "east"): 700, ("2", "two", "9093", ""): 705,
    }  # fmt: skip
    assert rows(page, f"{prefix}topic_log_dir_size_total_bytes") == {("orders",): 1405}
    assert rows(page, f"{prefix}topic_info") == {("orders", "3", "2", "delete"): 1}
    assert rows(page, f"{prefix}topic_high_water_mark_sum") == {}, "one of three is not known"
    assert rows(page, f"{prefix}consumer_group_empty_members") == {("readers",): 1}
    assert rows(page, f"{prefix}consumer_group_topic_assigned_partitions") == {
        ("readers", "orders"): 2
    }
    assert rows(page, f"{prefix}consumer_group_topic_lag") == {("readers", "orders"): 10}


def test_lag_of_a_group_in_records_and_seconds() -> None:
    earlier, now = found(), found()
    earlier.at_ms -= 60_000
    earlier.topics["orders"].partitions[0].ends = 40
    ends = Ends()
    ends.note(earlier)
    ends.note(now)
    page = lag_families(now, ends, "mine").all()
    prefix = "kafka_consumergroup_group_"
    place = ("mine", "readers", "orders", "0")
    assert rows(page, f"{prefix}lag") == {place: 10}
    # A record a second: the one at 90 came ten seconds before the end.
    assert rows(page, f"{prefix}lag_seconds") == {place: 10}
    assert rows(page, f"{prefix}max_lag_seconds") == {("mine", "readers"): 10}
