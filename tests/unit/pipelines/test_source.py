"""Sources, triggers and progress reports, as far as they are plain values."""

from typing import Any

import pytest

from kafkalite.pipelines.common.lake import files_for
from kafkalite.pipelines.common.running import Trigger
from kafkalite.pipelines.common.source import KafkaSource
from kafkalite.pipelines.lag import ends_of, lags


@pytest.mark.parametrize(
    "ways", [{}, {"topics": ("a",), "pattern": "b"}, {"pattern": "b", "assign": "{}"}]
)
def test_topics_are_named_in_one_way(ways: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="one way"):
        KafkaSource("kafka:9092", **ways)  # type: ignore[arg-type]


def test_clients_get_the_kafka_options() -> None:
    options = {"kafka.security.protocol": "SSL", "maxOffsetsPerTrigger": "5"}
    source = KafkaSource("kafka:9092", ("a",), options=options)
    assert source.client_options == {
        "bootstrap.servers": "kafka:9092",
        "isolation.level": "read_committed",
        "security.protocol": "SSL",
    }


def test_a_range_keeps_the_cluster_and_drops_where_to_start() -> None:
    options = {"kafka.client.id": "x", "startingOffsets": "latest", "maxOffsetsPerTrigger": "5"}
    source = KafkaSource("kafka:9092", ("a",), options=options)
    assert source.between({}, {("a", 0): 7}).options == {
        "kafka.client.id": "x",
        "startingOffsets": '{"a": {"0": 0}}',
        "endingOffsets": '{"a": {"0": 7}}',
    }


def test_unknown_trigger_is_refused() -> None:
    with pytest.raises(ValueError, match="no trigger"):
        Trigger("hourly").options()


@pytest.mark.parametrize(
    ("rows", "weight", "target", "files"),
    [
        (1000, 100.0, 50_000, 2),
        (1, 1.0, 50_000, 1),
        (1000, None, 50_000, None),
        (9, 1.0, None, None),
    ],
)
def test_files_follow_their_target_size(
    rows: int, weight: float | None, target: int | None, files: int | None
) -> None:
    assert files_for(rows, weight, target) == files


def test_ends_of_a_progress_report() -> None:
    progress = {
        "sources": [
            {"description": "KafkaV2[Subscribe[t]]", "endOffset": {"t": {"0": 5}}},
            {"description": "RateStreamV2[…]", "endOffset": 7},
            {"description": "KafkaV2[Subscribe[u]]", "endOffset": '{"u":{"1":6}}'},
            {"description": "KafkaV2[Subscribe[v]]", "endOffset": None},
        ]
    }
    assert ends_of(progress) == {("t", 0): 5, ("u", 1): 6}


def test_lag_is_what_is_left() -> None:
    found = lags({("t", 0): 5, ("t", 1): 9}, {("t", 0): 8, ("t", 1): 9})
    assert [each.lag for each in found] == [3, 0]


class Reader:
    """Stands where Spark's reader stands, and keeps the options that it is given."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self.read = self

    def format(self, name: str) -> "Reader":
        return self

    def options(self, **given: str) -> "Reader":
        self.given |= given
        return self

    def load(self) -> "Reader":
        return self

    def select(self, *columns: str) -> "Reader":
        return self


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_only_what_is_committed_is_read_unless_told_otherwise(level: str) -> None:
    reader: Any = Reader()
    options = {} if level == "read_committed" else {"kafka.isolation.level": level}
    source = KafkaSource("kafka:9092", ("a",), options=options)
    source.between({}, {("a", 0): 7}).batch(reader)
    assert reader.given["kafka.isolation.level"] == level
    assert source.client_options["isolation.level"] == level
