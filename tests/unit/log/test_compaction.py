"""Compaction: the last record of each key, tombstones, transactions, and what must not be lost."""

import pytest

from kafkalite.env.background import QueuedBackground
from kafkalite.env.slicing import finish
from kafkalite.log.config import COMPACT, LogConfig, LogSettings
from kafkalite.log.key_map import LatestOffsets
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.records.batch import iterate_headers
from kafkalite.records.record import BatchBuilder
from tests.unit.log.making import START_MS, World, batch, committed, keyed, marker, read_all

CONFIG = LogConfig(
    cleanup_policy=(COMPACT,),
    segment_bytes=400,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01,
    delete_retention_ms=10_000,
)
QUIET = LogSettings(log_cleaner_enable=False)


def compact(world):
    """Runs passes until nothing is left to clean."""
    cleaner = world.manager.periodic.cleaner
    committed(world.log())
    for _ in range(20):
        cleaner.run()
        while cleaner.is_running:
            world.clock.advance(1)
        if finish(cleaner.choose()) is None:
            break
    if cleaner._timer is not None:
        cleaner._timer.cancel()


def fold(records):
    """What a reader who keeps the last value of each key ends with."""
    found = {}
    for record in records:
        found[record.key] = record.value
    return {key: value for key, value in found.items() if value is not None}


def fill(world, count=60, keys=5):
    for index in range(count):
        world.log().append_as_leader(keyed([(b"k%d" % (index % keys), b"v%03d" % index)]), 0)


def test_the_last_value_of_each_key_stays_at_its_offset():
    world = World(CONFIG, settings=QUIET)
    fill(world)
    before = read_all(world.log())
    compact(world)
    after = read_all(world.log())
    assert len(after) < len(before) / 2
    assert fold(after) == fold(before)
    assert all(record in before for record in after)
    assert [record.offset for record in after] == sorted(record.offset for record in after)
    assert world.log().log_end_offset == 60


def test_nothing_of_the_active_segment_is_cleaned():
    world = World(CONFIG, settings=QUIET)
    fill(world)
    start = world.log().active.base_offset
    before = [record for record in read_all(world.log()) if record.offset >= start]
    compact(world)
    assert [record for record in read_all(world.log()) if record.offset >= start] == before


def test_a_compacted_log_is_read_from_any_offset_and_reopened():
    world = World(CONFIG, settings=QUIET)
    fill(world)
    compact(world)
    after = read_all(world.log())
    for offset in range(60):
        found = world.log().read(offset, 10_000)
        assert found.range is not None
        first = next(iterate_headers(found.range.read()))
        assert first.last_offset >= offset
    for clean in (True, False):
        assert read_all(world.restart(clean=clean)) == after
    compact(world)
    assert read_all(world.log()) == after


def test_a_tombstone_goes_when_its_time_has_passed():
    world = World(CONFIG, settings=QUIET)
    fill(world, 10)
    world.log().append_as_leader(keyed([(b"k1", None)]), 0)
    fill(world, 20, keys=1)
    compact(world)
    assert [r.value for r in read_all(world.log()) if r.key == b"k1"] == [None]
    world.clock.advance(10_001)
    fill(world, 20, keys=1)
    compact(world)
    assert [r for r in read_all(world.log()) if r.key == b"k1"] == []


def test_records_of_aborted_transactions_go_and_committed_ones_stay():
    world = World(CONFIG, settings=QUIET)
    log = world.log()
    for index, commit in enumerate([True, False, True, False]):
        fields = {"producer_id": 9, "producer_epoch": 0, "is_transactional": True}
        log.append_as_leader(keyed([(b"k%d" % index, b"v")], base_sequence=index, **fields), 0)
        log.append_as_leader(marker(9, 0, commit=commit), 0, AppendOrigin.COORDINATOR)
    fill(world, 20, keys=1)
    aborted = log.aborted_transactions(0, 100)
    assert len(aborted) == 2
    compact(world)
    keys = {record.key for record in read_all(world.log())}
    assert {b"k0", b"k2"} <= keys
    assert b"k1" not in keys
    # The last batch of the producer keeps its sequence, empty, and its transaction in the index.
    assert (
        world.log()
        .append_as_leader(
            keyed(
                [(b"k3", b"v")],
                base_sequence=3,
                producer_id=9,
                producer_epoch=0,
                is_transactional=True,
            ),
            0,
        )
        .is_duplicate
    )
    restarted = world.restart(clean=False)
    assert restarted.producers is not None
    assert restarted.producers.states[9].last_sequence == 3


def test_markers_go_after_their_records_and_their_time():
    world = World(CONFIG, settings=QUIET)
    log = world.log()
    fields = {"producer_id": 9, "producer_epoch": 0, "is_transactional": True}
    log.append_as_leader(keyed([(b"a", b"1")], base_sequence=0, **fields), 0)
    log.append_as_leader(marker(9, 0, commit=True), 0, AppendOrigin.COORDINATOR)
    log.append_as_leader(keyed([(b"a", b"2")], base_sequence=1, **fields), 0)
    log.append_as_leader(marker(9, 0, commit=True), 0, AppendOrigin.COORDINATOR)
    fill(world, 20, keys=1)
    compact(world)
    for _ in range(2):
        world.clock.advance(10_001)
        fill(world, 20, keys=1)
        compact(world)
    offsets = [record.offset for record in read_all(world.log())]
    assert 1 not in offsets
    assert {2, 3} <= set(offsets)


def test_min_compaction_lag_keeps_what_is_young():
    config = LogConfig(
        cleanup_policy=(COMPACT,), segment_bytes=400, min_cleanable_dirty_ratio=0.01,
        min_compaction_lag_ms=3_600_000,
    )  # fmt: skip
    world = World(config, settings=QUIET)
    fill(world)
    before = read_all(world.log())
    compact(world)
    assert read_all(world.log()) == before
    world.clock.advance(3_600_001)
    compact(world)
    assert len(read_all(world.log())) < len(before)


def test_max_compaction_lag_cleans_what_is_not_dirty_enough():
    config = LogConfig(
        cleanup_policy=(COMPACT,), segment_bytes=400, min_cleanable_dirty_ratio=1.0,
        max_compaction_lag_ms=1000,
    )  # fmt: skip
    world = World(config, settings=QUIET)
    fill(world)
    assert finish(world.manager.periodic.cleaner.choose()) is None
    world.clock.advance(1001)
    compact(world)
    assert len(read_all(world.log())) < 60


def test_an_open_transaction_stops_compaction_before_it():
    world = World(CONFIG, settings=QUIET)
    fill(world, 20)
    world.log().append_as_leader(
        keyed(
            [(b"k0", b"open")],
            base_sequence=0,
            producer_id=9,
            producer_epoch=0,
            is_transactional=True,
        ),
        0,
    )
    fill(world, 30)
    compact(world)
    assert len([r for r in read_all(world.log()) if r.offset > 20]) == 30


def test_little_memory_takes_more_passes_and_ends_the_same():
    settings = LogSettings(log_cleaner_enable=False, log_cleaner_dedupe_buffer_size=180 * 3)
    world = World(CONFIG, settings=settings)
    fill(world, 60, keys=5)
    before = read_all(world.log())
    compact(world)
    assert fold(read_all(world.log())) == fold(before)


def test_compressed_batches_are_cleaned_in_their_codec():
    world = World(CONFIG, settings=QUIET)
    for index in range(60):
        world.log().append_as_leader(
            keyed([(b"k0", b"v%d" % index), (b"k%d" % (index % 4), b"w" * 50)], compression=4), 0
        )
    before = read_all(world.log())
    compact(world)
    after = read_all(world.log())
    assert fold(after) == fold(before)
    assert len(after) < len(before)


def test_the_cleaner_runs_by_itself_and_remembers_where_it_was():
    world = World(CONFIG)
    fill(world)
    committed(world.log())
    world.clock.advance(16_000)
    cleaned_to = world.manager.periodic.cleaner.cleaned_to(world.log())
    assert cleaned_to > 0
    assert len(read_all(world.log())) < 60
    world.restart(clean=True)
    assert world.manager.periodic.cleaner.cleaned_to(world.log()) == cleaned_to


@pytest.mark.parametrize("when", [0, 1, 2])
def test_truncation_during_a_pass_drops_the_pass(when):
    world = World(CONFIG, settings=QUIET)
    fill(world)
    committed(world.log())
    before = read_all(world.log())
    background = QueuedBackground()
    world.env.background = background
    world.manager.periodic.cleaner.run()
    for _ in range(when):
        background.run_one()
    world.log().truncate_to(3)
    background.run_all()
    assert read_all(world.log()) == before[:3]
    assert not any(name.endswith((".swap", ".cleaned")) for name in world.names())


def test_records_at_other_offsets_than_their_batch_says_are_kept_by_their_keys():
    """Apache Kafka takes such a batch as well, when it is not compressed."""
    world = World(CONFIG, settings=QUIET)
    fill(world, 20)
    builder = BatchBuilder()
    for delta, key in ((0, b"x"), (5, b"y"), (7, b"z"), (9, b"w")):
        builder.append(START_MS, key, b"odd", offset_delta=delta)
    odd = builder.build(0, last_offset_delta=3)
    world.log().append_as_leader(memoryview(odd), 0)
    fill(world, 40)
    before = read_all(world.log())
    assert [r.offset for r in before if r.value == b"odd"] == [20, 25, 27, 29]
    compact(world)
    after = read_all(world.log())
    assert fold(after) == fold(before)
    assert {r.key for r in after if r.value == b"odd"} == {b"x", b"y", b"z", b"w"}
    assert len(after) < len(before)


def test_keys_are_bounded():
    keys = LatestOffsets(180 * 2)
    assert keys.put(b"a", 1)
    assert keys.put(b"b" * 100, 2)
    assert not keys.put(b"c", 3)
    assert keys.put(b"a", 4)
    assert (keys.get(b"a"), keys.get(b"b" * 100), keys.get(b"c")) == (4, 2, -1)


def test_both_policies_at_once():
    config = LogConfig(
        cleanup_policy=("compact", "delete"), segment_bytes=400, min_cleanable_dirty_ratio=0.01,
        retention_bytes=1200,
    )  # fmt: skip
    world = World(config, settings=QUIET)
    for index in range(100):
        world.log().append_as_leader(batch([b"v"], keys=[b"k%d" % index]), 0)
    committed(world.log())
    world.manager.periodic.retain()
    assert world.log().log_start_offset > 0
    compact(world)
    assert world.log().size <= 1600
