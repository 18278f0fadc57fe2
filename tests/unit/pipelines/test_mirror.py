"""Where offsets of a mirrored topic came to lie."""

import pytest

from kafkalite.pipelines.common.source import KafkaSource
from kafkalite.pipelines.mirror import Mirror, Sync, translate

DENSE = Sync(start=100, end=110, to_start=0, to_end=10)
# Ten offsets with a gap in them: only seven records.
GAPPED = Sync(start=110, end=120, to_start=10, to_end=17)


def _no_reading(start: int) -> int:
    raise AssertionError("a dense range needs no reading")


@pytest.mark.parametrize(("offset", "place"), [(100, 0), (104, 4), (109, 9), (110, 10)])
def test_dense_offsets_are_computed(offset: int, place: int) -> None:
    assert translate(offset, [DENSE], _no_reading) == place


def test_offsets_over_gaps_are_counted() -> None:
    assert translate(115, [DENSE, GAPPED], lambda start: {110: 3}[start]) == 13
    assert translate(120, [DENSE, GAPPED], _no_reading) == 17


@pytest.mark.parametrize("offset", [99, 121])
def test_offsets_outside_have_no_place(offset: int) -> None:
    assert translate(offset, [DENSE, GAPPED], _no_reading) is None
    assert translate(offset, [], _no_reading) is None


def test_a_mirror_into_itself_is_refused() -> None:
    here = KafkaSource("kafka:9092", ("t",))
    with pytest.raises(ValueError, match="same cluster"):
        Mirror(None, here, here, "/c")  # type: ignore[arg-type]


def test_options_that_break_the_order_are_refused() -> None:
    here = KafkaSource("kafka:9092", ("t",), options={"minPartitions": "8"})
    there = KafkaSource("other:9092", ("t",))
    with pytest.raises(ValueError, match="minPartitions"):
        Mirror(None, here, there, "/c")  # type: ignore[arg-type]
