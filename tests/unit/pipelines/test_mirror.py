"""Where offsets of a mirrored topic came to lie, what goes over, and what is left to write."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.pipelines.common.copies import settings_of_copy, strangers, to_change
from kafkalite.pipelines.common.source import KafkaSource
from kafkalite.pipelines.common.translation import (
    BEFORE,
    BEHIND,
    PAST,
    Moves,
    Sync,
    moves,
    still_to_write,
    translate,
)
from kafkalite.pipelines.mirror import Mirror

DENSE = Sync(start=100, end=110, to_start=0, to_end=10)
# Ten offsets with gaps in them: 110 and 111, 114 to 117, 119.
GAPPED = Sync(110, 120, 10, 17, ((110, 2), (114, 4), (119, 1)))


@pytest.mark.parametrize(("offset", "place"), [(100, 0), (104, 4), (109, 9), (110, 10)])
def test_dense_offsets_are_computed(offset: int, place: int) -> None:
    assert translate(offset, [DENSE]) == place


@pytest.mark.parametrize(
    ("offset", "place"),
    [(111, 11), (112, 12), (113, 12), (114, 12), (117, 15), (118, 16), (119, 16), (120, 17)],
)
def test_offsets_over_gaps_are_those_of_the_next_record(offset: int, place: int) -> None:
    assert translate(offset, [DENSE, GAPPED]) == place


@pytest.mark.parametrize("offset", [99, 121])
def test_offsets_outside_have_no_place(offset: int) -> None:
    assert translate(offset, [DENSE, GAPPED]) is None
    assert translate(offset, []) is None


def test_without_the_runs_a_group_goes_on_at_the_beginning_of_the_batch() -> None:
    """Compacted while it was copied: records come again rather than not at all."""
    assert translate(117, [DENSE, Sync(110, 120, 10, 17)]) == 10


@given(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 61))
def test_a_place_is_the_count_of_records_before(offsets: set[int], offset: int) -> None:
    ordered = sorted(offsets)
    runs = tuple((each, 1) for each in ordered)
    sync = Sync(0, 61, 5, 5 + len(ordered), runs)
    assert translate(offset, [sync]) == 5 + sum(each < offset for each in ordered)


def test_a_group_is_never_set_back() -> None:
    here = {("c", 0): 10, ("c", 1): 10, ("c", 2): 10, ("c", 3): 0, ("c", 4): 90}
    places = {("c", 0): 8, ("c", 1): 8, ("c", 2): 8}
    there = {("c", 0): 90, ("c", 1): 8, ("c", 2): 7}
    starts = {("c", 3): 5, ("c", 4): 5}
    found = moves(here, there, places, starts)
    left = {("c", 0): BEHIND, ("c", 1): BEHIND, ("c", 3): BEFORE, ("c", 4): PAST}
    assert found == Moves({("c", 2): 8}, left)


def test_what_a_run_moved_before_is_not_told_as_left() -> None:
    earlier = Moves({("c", 0): 5, ("c", 1): 5}, {("c", 2): PAST})
    now = Moves({("c", 1): 9}, {("c", 0): BEHIND, ("c", 3): BEHIND})
    assert now.after(earlier) == Moves({("c", 0): 5, ("c", 1): 9}, {("c", 3): BEHIND})


def test_copies_are_set_as_their_sources_but_for_what_is_their_clusters_own() -> None:
    source = {
        "retention.ms": "-1",
        "cleanup.policy": "compact",
        "min.insync.replicas": "3",
        "message.timestamp.type": "LogAppendTime",
        "leader.replication.throttled.replicas": "*",
    }
    wanted = {
        "retention.ms": "-1",
        "cleanup.policy": "compact",
        "message.timestamp.type": "CreateTime",
    }
    assert settings_of_copy(source) == wanted
    copy = {"retention.ms": "604800000", "cleanup.policy": "compact", "segment.ms": "1"}
    assert to_change(source, copy) == {
        "retention.ms": "-1",
        "message.timestamp.type": "CreateTime",
    }
    assert to_change(source, wanted) == {}


def test_a_copy_that_grew_by_others_hands_is_named() -> None:
    left = {("c", 0): 10, ("c", 1): 5}
    assert strangers(left, {("c", 0): 12, ("c", 1): 5, ("d", 0): 9}) == [
        "c-0 ends at 12, this mirror left it at 10"
    ]


def test_what_landed_is_found_again_after_any_compaction() -> None:
    """Every way to compact five records, after every count of them that landed."""
    batch = [(offset, offset * 7) for offset in range(5)]
    for landed in range(6):
        came = [content for _, content in batch[:landed]]
        for size in range(6):
            for left in combinations(batch, size):
                rest = [offset for offset, _ in left if offset >= landed]
                assert still_to_write(came, left) == (rest[0] if rest else None)


def test_a_mirror_into_itself_is_refused() -> None:
    here = KafkaSource("kafka:9092", ("t",))
    with pytest.raises(ValueError, match="same cluster"):
        _mirror(here, here)


def test_options_that_break_the_order_are_refused() -> None:
    here = KafkaSource("kafka:9092", ("t",), options={"minPartitions": "8"})
    there = KafkaSource("other:9092", ("t",))
    with pytest.raises(ValueError, match="minPartitions"):
        _mirror(here, there)


def test_one_name_for_many_copies_is_refused() -> None:
    here, there = KafkaSource("kafka:9092", ("t", "u")), KafkaSource("other:9092", ("*",))
    with pytest.raises(ValueError, match="one name"):
        _mirror(here, there, "all")
    _mirror(KafkaSource("kafka:9092", ("t",)), there, "all")


def _mirror(here: Any, there: Any, rename: str = "{topic}") -> Mirror:
    session: Any = None
    return Mirror(session, here, there, "/c", rename)
