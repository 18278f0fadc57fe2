"""Sources, triggers and progress reports, as far as they are plain values."""

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
