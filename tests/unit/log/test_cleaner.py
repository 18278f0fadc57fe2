"""The cleaner among many logs: a bad one keeps no other waiting, and nothing is left behind."""

import errno
import logging
import os
import tracemalloc
from collections import Counter
from dataclasses import replace

import pytest

from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import STEPS_PER_SLICE, finish
from kafkalite.log import cleaner
from kafkalite.log.cleaning import Pass
from kafkalite.log.config import COMPACT, LOG_APPEND_TIME, LogConfig, LogSettings
from kafkalite.log.large import heads_of
from kafkalite.log.manager import LogManager
from kafkalite.records.batch import Compression, iterate_headers
from kafkalite.records.record import BatchBuilder
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import ROOT, START_MS, World, committed, keyed, read_all

CONFIG = LogConfig(
    cleanup_policy=(COMPACT,), segment_bytes=400, index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.01, delete_retention_ms=10_000, file_delete_delay_ms=1,
)  # fmt: skip
LARGE = LogConfig(
    cleanup_policy=(COMPACT,), segment_bytes=1 << 20, min_cleanable_dirty_ratio=0,
    delete_retention_ms=10_000,
)  # fmt: skip
BACKOFF_MS = LogSettings().log_cleaner_backoff_ms


def fill(world, topic="t", count=60, keys=5):
    for index in range(count):
        value = b"v%03d" % index
        world.log(topic).append_as_leader(keyed([(b"k%d" % (index % keys), value)]), 0)
    committed(world.log(topic))


def damage(world, topic, segment=1):
    """A flipped bit in a closed segment, where nobody looks but who reads it."""
    log = world.log(topic)
    file = world.disk.open(log.segments[segment].path(".log"))
    byte = file.read_at(70, 1)[0]
    file.write_at(70, bytes([byte ^ 1]))


def errors(caplog):
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_damaged_batch_keeps_no_other_log_waiting_and_is_told_once(caplog):
    world = World(CONFIG)
    for topic in ("a-bad", "good", "z-bad"):
        fill(world, topic)
    damage(world, "a-bad")
    damage(world, "z-bad")
    world.clock.advance(20 * BACKOFF_MS)
    assert len(read_all(world.log("good"))) < 30
    assert len(world.log("a-bad").segments) == len(world.log("z-bad").segments) > 10
    told = errors(caplog)
    assert len(told) == 2
    assert all("is not compacted" in record.getMessage() for record in told)


def test_a_log_with_a_damaged_batch_is_compacted_when_that_is_gone():
    world = World(CONFIG)
    fill(world, "bad")
    damage(world, "bad", 0)
    world.clock.advance(2 * BACKOFF_MS)
    log = world.log("bad")
    assert len(read_all(world.log("bad"))) == 60
    log.delete_records_before(log.segments[1].base_offset)
    world.manager.periodic.retain()
    world.clock.advance(2 * BACKOFF_MS)
    assert len(read_all(world.log("bad"))) < 30


def test_a_log_with_a_damaged_batch_is_tried_again_by_the_next_broker(caplog):
    world = World(CONFIG)
    fill(world, "bad")
    damage(world, "bad")
    world.clock.advance(2 * BACKOFF_MS)
    damage(world, "bad")  # the same bit again: it is as it was
    assert len(read_all(world.log("bad"))) == 60
    world.restart(clean=True)
    committed(world.log("bad"))
    world.clock.advance(2 * BACKOFF_MS)
    assert len(read_all(world.log("bad"))) < 30
    assert len(errors(caplog)) == 1


def test_a_log_is_compacted_after_a_kill_though_nothing_is_written_to_it():
    """What recovery may look at again stays as it is, and so it is made to last first."""
    world = World(CONFIG)
    fill(world)
    log = committed(world.restart(clean=False))
    assert log.recovery_point < log.active.base_offset
    world.clock.advance(3 * BACKOFF_MS)
    assert log.recovery_point >= log.active.base_offset
    assert len(read_all(log)) < 30


def test_a_mistake_of_the_cleaner_stops_one_log_alone(caplog, monkeypatch):
    world = World(CONFIG)
    for topic in ("a", "b"):
        fill(world, topic)
    from kafkalite.log.filter import Filter

    keep = Filter.keep

    def fail_once(self, batch, is_old):
        monkeypatch.setattr(Filter, "keep", keep)
        raise ZeroDivisionError("not foreseen")

    monkeypatch.setattr(Filter, "keep", fail_once)
    world.clock.advance(3 * BACKOFF_MS)
    sizes = sorted(len(read_all(world.log(topic))) for topic in ("a", "b"))
    assert sizes[0] < 30
    assert sizes[1] == 60
    assert "not foreseen" in errors(caplog)[0].getMessage()
    assert not any(name.endswith((".cleaned", ".swap")) for name in world.names("a"))


def test_a_log_for_which_the_disk_is_too_full_keeps_no_other_waiting():
    disk = CrashDisk()
    world = World(CONFIG, disk)
    for topic in ("a", "b"):
        fill(world, topic)

    def full(kind, path, size):
        if kind == "create" and path.startswith(f"{ROOT}/a-0") and path.endswith(".cleaned"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    disk.before_operation = full
    world.clock.advance(3 * BACKOFF_MS)
    assert len(read_all(world.log("b"))) < 30
    assert len(read_all(world.log("a"))) == 60
    disk.before_operation = None
    world.clock.advance(3 * BACKOFF_MS)
    assert len(read_all(world.log("a"))) < 30


# --- what is large --------------------------------------------------------------------------------


def vast(pairs, codec, size, **fields):
    """A batch of few bytes whose values are of so many."""
    builder = BatchBuilder()
    for number, (key, has_value) in enumerate(pairs):
        value = b"v" * size if has_value else None
        builder.append(START_MS + number, key, value, [("h", b"x")])
    return memoryview(builder.build(compression=codec, **fields))


@pytest.fixture
def small_limits(monkeypatch):
    """So that what is large is quick to test."""
    monkeypatch.setattr("kafkalite.log.record_pieces.MAX_BODY_BYTES", 50_000)


@pytest.mark.parametrize("size", [10, 60_000], ids=["held", "as a stream"])
@pytest.mark.parametrize("has_deletion", [False, True])
def test_what_is_left_of_a_batch_is_told_from_the_time_of_its_append(
    size, has_deletion, small_limits
):
    world = World(replace(LARGE, message_timestamp_type=LOG_APPEND_TIME))
    log = world.log()
    world.clock.advance(77)
    rows = [(b"a", True), (b"b", True), (b"c", not has_deletion)]
    log.append_as_leader(vast(rows, Compression.GZIP, size), 0)
    appended_ms = world.clock.now_ms()
    log.append_as_leader(vast([(b"a", True)], Compression.GZIP, size), 0)
    log.roll()
    committed(log)
    world.clock.advance(2 * BACKOFF_MS)
    found = log.read(0, 1 << 20)
    assert found.range is not None
    data = found.range.read()
    first = next(iterate_headers(data))
    assert (first.record_count, first.max_timestamp) == (2, appended_ms)
    assert first.has_delete_horizon == has_deletion
    assert has_deletion or first.base_timestamp == appended_ms
    deltas = {head.timestamp_delta for head in heads_of(data, first) if head is not None}
    assert deltas == {appended_ms - first.base_timestamp}


CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


@pytest.mark.pure
@pytest.mark.parametrize("codec", CODECS)
def test_what_inflates_too_far_is_compacted_as_a_stream(codec, small_limits, caplog):
    world = World(LARGE)
    log = world.log()
    long_key = b"l" * 100_000
    log.append_as_leader(vast([(b"a", True), (b"b", True), (long_key, True)], codec, 60_000), 0)
    log.append_as_leader(vast([(b"a", True), (b"c", False)], codec, 60_000), 0)
    log.append_as_leader(vast([(long_key, True), (b"d", True)], codec, 60_000), 0)
    log.append_as_leader(keyed([(b"b", b"small")]), 0)
    before = {record.offset: record for record in read_all(log)}
    log.roll()
    committed(log)
    world.clock.advance(2 * BACKOFF_MS)
    after = read_all(log)
    assert [record.offset for record in after] == [3, 4, 5, 6, 7]
    assert all(before[record.offset] == record for record in after)
    world.clock.advance(10_000)
    log.append_as_leader(keyed([(b"e", b"1")]), 0)
    log.roll()
    committed(log)
    world.clock.advance(2 * BACKOFF_MS)
    assert [record.offset for record in read_all(log)] == [3, 5, 6, 7, 8]
    assert not errors(caplog)


def test_a_value_of_200_mb_in_20_kb_is_compacted_in_little_memory(caplog):
    world = World(LARGE)
    fill(world, "other", 60)
    log = world.log()
    half = vast([(b"a", True), (b"b", True)], Compression.ZSTD, 100_000_000)
    whole = vast([(b"c", True)], Compression.ZSTD, 200_000_000)
    for batch in (half, whole):
        assert len(batch) < 50_000
        log.append_as_leader(batch, 0)
    del half, whole
    log.append_as_leader(keyed([(b"a", b"small")]), 0)
    log.roll()
    committed(log)
    tracemalloc.start()
    world.clock.advance(2 * BACKOFF_MS)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 140_000_000
    found = log.read(0, 1 << 20).range
    assert found is not None
    headers = list(iterate_headers(found.read()))
    assert [header.record_count for header in headers] == [1, 1, 1]
    assert not errors(caplog)


def test_a_batch_of_more_keys_than_the_memory_takes_is_compacted_bit_by_bit(caplog):
    settings = LogSettings(log_cleaner_dedupe_buffer_size=180 * 3)
    world = World(LARGE, settings=settings)
    log = world.log()
    for value in (b"old", b"new"):
        log.append_as_leader(keyed([(b"k%02d" % index, value) for index in range(20)]), 0)
    log.roll()
    committed(log)
    world.clock.advance(30 * BACKOFF_MS)
    assert {record.value for record in read_all(log)} == {b"new"}
    assert finish(world.manager.periodic.cleaner.choose()) is None
    assert not errors(caplog)


# --- what is left behind --------------------------------------------------------------------------


def snapshots(world):
    names = world.names()
    return sorted(int(n.removesuffix(".snapshot")) for n in names if n.endswith(".snapshot"))


def test_snapshots_of_segments_that_became_one_go():
    world = World(CONFIG)
    for index in range(120):
        world.log().append_as_leader(
            keyed([(b"k%d" % (index % 3), b"v")], producer_id=7, producer_epoch=0,
                  base_sequence=index), 0,
        )  # fmt: skip
        if index % 60 == 59:
            committed(world.log())
            assert len(snapshots(world)) > 10
            world.clock.advance(2 * BACKOFF_MS)
    bases = [segment.base_offset for segment in world.log().segments]
    assert len(bases) < 20
    assert set(snapshots(world)) <= set(bases)
    assert bases[-1] in snapshots(world)
    for clean in (False, True):
        state = world.restart(clean=clean).needed_producers().states[7]
        assert (state.last_sequence, state.last_offset) == (119, 119)


def test_the_newest_snapshot_stays_wherever_it_is():
    world = World(CONFIG)
    fill(world)
    for offset in snapshots(world)[2:]:
        world.disk.remove(f"{ROOT}/t-0/{offset:020}.snapshot")
    newest = snapshots(world)[-1]
    world.clock.advance(2 * BACKOFF_MS)
    world.log().roll()
    fill(world, count=7)
    for offset in snapshots(world):
        if offset > newest:
            world.disk.remove(f"{ROOT}/t-0/{offset:020}.snapshot")
    world.clock.advance(2 * BACKOFF_MS)
    assert newest not in world.log().bases
    assert snapshots(world) == [newest]


MANY = 400
AT_MOST = 4 * STEPS_PER_SLICE  # in a turn, with so many in each step


@pytest.fixture
def counted(monkeypatch):
    """How many logs were looked at in each turn."""
    counts, clock_turn = Counter[int](), [0]
    monkeypatch.setattr(cleaner, "LOOKED_AT_PER_STEP", 4)

    def looked(config):
        counts[clock_turn[0]] += 1
        return COMPACT in config.cleanup_policy

    def fire(timer_clock, delay_ms, callback):
        def turn():
            clock_turn[0] += 1
            callback()

        return call_later(timer_clock, delay_ms, turn)

    call_later = ManualClock.call_later
    monkeypatch.setattr(ManualClock, "call_later", fire)
    monkeypatch.setattr(LogConfig, "is_compacted", property(looked))
    return counts


def test_a_look_at_many_logs_takes_several_turns(counted):
    world = World(CONFIG)
    for number in range(MANY):
        world.log(f"t{number}")
    counted.clear()
    world.clock.advance(BACKOFF_MS)
    assert sum(counted.values()) == MANY
    assert max(counted.values()) <= AT_MOST


@pytest.mark.parametrize("is_first", [True, False])
def test_a_log_that_goes_while_others_are_looked_at_is_not_compacted(
    counted, monkeypatch, is_first
):
    world, passes = World(CONFIG), list[str]()
    begin = Pass.start

    def begun(self):
        passes.append(self.log.topic)
        begin(self)

    monkeypatch.setattr(Pass, "start", begun)
    names = [f"t{number}" for number in range(MANY)]
    for name in names:
        world.log(name)
    gone = names[0 if is_first else -1]
    fill(world, gone)
    world.clock.call_later(BACKOFF_MS, lambda: world.manager.delete(gone, 0))
    counted.clear()
    world.clock.advance(BACKOFF_MS)
    assert world.manager.get(gone, 0) is None
    assert passes == []
    fill(world, names[5])
    world.clock.advance(2 * BACKOFF_MS)
    assert len(read_all(world.log(names[5]))) < 30
    assert set(passes) == {names[5]}


def test_a_stop_ends_the_look(counted):
    world = World(CONFIG)
    for number in range(MANY):
        world.log(f"t{number}")
    world.clock.call_later(BACKOFF_MS, world.manager.periodic.cleaner.stop)
    counted.clear()
    world.clock.advance(2 * BACKOFF_MS)
    assert 0 < sum(counted.values()) < MANY


def test_the_checkpoint_is_written_without_a_look_at_all_logs(monkeypatch):
    world = World(CONFIG)
    fill(world)
    world.clock.advance(BACKOFF_MS)
    monkeypatch.setattr(LogManager, "__iter__", lambda _: pytest.fail("it looks at all"))
    world.manager.periodic.cleaner.save()


@pytest.mark.parametrize("is_first", [True, False])
def test_a_log_that_is_to_keep_all_keys_meanwhile_is_not_compacted(counted, is_first):
    """Its topic was given another cleanup.policy while others were looked at."""
    world = World(CONFIG)
    names = [f"t{number}" for number in range(MANY)]
    for name in names:
        world.log(name)
    changed = world.log(names[0 if is_first else -1])
    fill(world, changed.topic)

    def change():
        changed.config = replace(CONFIG, cleanup_policy=("delete",))

    world.clock.call_later(BACKOFF_MS, change)
    world.clock.advance(3 * BACKOFF_MS)
    assert len(read_all(changed)) == 60


def test_a_look_that_fails_by_a_mistake_is_not_the_last(monkeypatch):
    world = World(CONFIG)
    fill(world)

    def fail(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(cleaner, "measure", fail)
        with pytest.raises(ZeroDivisionError):
            world.clock.advance(BACKOFF_MS)
    world.clock.advance(2 * BACKOFF_MS)
    assert len(read_all(world.log("t"))) < 30
