"""Appending and reading: offsets, rolling, limits, reopening."""

import pytest

from kafkalite.env import manual_env
from kafkalite.env.disk import RealDisk
from kafkalite.log.config import LOG_APPEND_TIME, LogConfig
from kafkalite.log.manager import LogManager
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import iterate_headers
from tests.unit.log.making import START_MS, World, batch, committed, read_all

SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)


def test_offsets_are_given_in_order():
    log = World().log()
    first = log.append_as_leader(batch([b"a", b"b"]), 3)
    second = log.append_as_leader(batch([b"c"]), 3)
    assert (first.base_offset, first.last_offset) == (0, 1)
    assert (second.base_offset, second.last_offset) == (2, 2)
    assert log.log_end_offset == 3
    assert [(r.offset, r.value) for r in read_all(log)] == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_the_leaders_epoch_is_in_the_batch():
    log = World().log()
    log.append_as_leader(batch([b"a"]), 7)
    found = log.read(0, 1000).range
    assert found is not None
    assert next(iterate_headers(found.read())).partition_leader_epoch == 7
    assert log.end_offset_for_epoch(7) == (7, 1)


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_appended_is_there_after_a_restart(clean):
    world = World(SMALL)
    for index in range(40):
        world.log().append_as_leader(batch([b"%d" % index, b"x" * 20]), index // 10)
    committed(world.log())
    before = read_all(world.log())
    log = world.restart(clean=clean)
    assert read_all(log) == before
    assert log.log_end_offset == 80
    assert log.end_offset_for_epoch(2) == (2, 60)
    assert log.append_as_leader(batch([b"next"]), 4).base_offset == 80


def test_a_fetch_from_inside_a_batch_returns_the_whole_batch():
    log = World().log()
    log.append_as_leader(batch([b"a", b"b", b"c"]), 0)
    log.append_as_leader(batch([b"d"]), 0)
    found = log.read(2, 1)
    assert found.range is not None
    assert [h.base_offset for h in iterate_headers(found.range.read())] == [0]


def test_a_read_returns_one_batch_however_small_the_limit_unless_told_otherwise():
    log = World().log()
    log.append_as_leader(batch([b"a" * 100]), 0)
    assert log.read(0, 1).size > 100
    assert log.read(0, 1, min_one_message=False).size == 0, "a part of a batch is of no use"
    assert log.read(0, 0, min_one_message=False).size == 0


def test_a_read_never_passes_the_limit():
    log = World(SMALL).log()
    for _ in range(30):
        log.append_as_leader(batch([b"a", b"b"]), 0)
    for limit in range(0, 61, 2):
        seen = []
        offset = 0
        while (found := log.read(offset, 10_000, limit)).range is not None:
            headers = list(iterate_headers(found.range.read()))
            seen += [h.base_offset for h in headers]
            offset = headers[-1].next_offset
            assert found.end_offset >= offset
        assert seen == list(range(0, limit, 2))


def test_reading_outside_of_the_log_is_refused():
    log = World().log()
    log.append_as_leader(batch([b"a"]), 0)
    assert log.read(1, 100).range is None
    for offset in (-1, 2):
        with pytest.raises(KafkaError) as refused:
            log.read(offset, 100)
        assert refused.value.code == Error.OFFSET_OUT_OF_RANGE


def test_segments_roll_by_size_and_reads_cross_them():
    world = World(SMALL)
    log = world.log()
    for index in range(50):
        log.append_as_leader(batch([b"%02d" % index]), 0)
    assert len(log.segments) > 5
    assert all(segment.size <= 500 for segment in log.segments)
    assert [r.value for r in read_all(log, 64)] == [b"%02d" % index for index in range(50)]


def test_segments_roll_by_record_time():
    log = World(LogConfig(segment_ms=1000)).log()
    for timestamp in (START_MS, START_MS + 900, START_MS + 1001, START_MS + 1500):
        log.append_as_leader(batch([b"a"], timestamp=timestamp), 0)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_segments_roll_by_wall_clock_where_records_have_no_time():
    world = World(LogConfig(segment_ms=1000))
    log = world.log()
    log.append_as_leader(batch([b"a"], timestamp=-1), 0)
    world.clock.advance(1001)
    log.append_as_leader(batch([b"b"], timestamp=-1), 0)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_jitter_brings_the_roll_forward():
    log = World(LogConfig(segment_ms=1000, segment_jitter_ms=900)).log()
    assert 0 <= log.roll_jitter_ms < 900


@pytest.mark.parametrize(("step_ms", "bases"), [(1, [0, 4, 8]), (0, [0, 7, 14])])
def test_segments_roll_when_an_index_is_full(step_ms, bases):
    """In 48 bytes there is room for six offsets, or for three times and the one at the end."""
    log = World(LogConfig(index_interval_bytes=0, segment_index_bytes=48)).log()
    for index in range(bases[-1] + 1):
        log.append_as_leader(batch([b"a"], timestamp=START_MS + index * step_ms), 0)
    assert [segment.base_offset for segment in log.segments] == bases


def test_a_batch_that_no_segment_can_hold_is_refused():
    log = World(SMALL).log()
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch([b"a" * 600]), 0)
    assert refused.value.code == Error.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_log_append_time_replaces_the_producers():
    world = World(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    log = world.log()
    result = log.append_as_leader(batch([b"a", b"b"], timestamp=5), 0)
    now_ms = world.clock.now_ms()
    assert result.log_append_time_ms == now_ms
    assert {record.timestamp for record in read_all(log)} == {now_ms}


def test_a_follower_takes_offsets_and_epochs_as_they_come():
    leader, follower = World().log(), World().log()
    for index in range(5):
        leader.append_as_leader(batch([b"a", b"b"]), index)
    data = leader.read(0, 1 << 20).range
    assert data is not None
    follower.append_as_follower(memoryview(bytearray(data.read())))
    assert read_all(follower) == read_all(leader)
    assert follower.epochs.entries() == leader.epochs.entries()


def test_a_follower_leaves_out_batches_of_a_later_epoch():
    leader, follower = World().log(), World().log()
    leader.append_as_leader(batch([b"a"]), 1)
    leader.append_as_leader(batch([b"b"]), 2)
    data = leader.read(0, 1 << 20).range
    assert data is not None
    follower.append_as_follower(memoryview(bytearray(data.read())), leader_epoch=1)
    assert [record.value for record in read_all(follower)] == [b"a"]


def test_a_follower_refuses_offsets_that_it_has():
    leader, follower = World().log(), World().log()
    leader.append_as_leader(batch([b"a"]), 0)
    data = leader.read(0, 1 << 20).range
    assert data is not None
    follower.append_as_follower(memoryview(bytearray(data.read())))
    with pytest.raises(KafkaError):
        follower.append_as_follower(memoryview(bytearray(data.read())))


def test_idle_logs_keep_no_file_open(tmp_path):
    disk = RealDisk()
    manager = LogManager(manual_env(disk=disk), [str(tmp_path)], node_id=1, cluster_id="c")
    manager.start()
    for index in range(20):
        manager.create("t", index, bytes(16))
    assert len(disk._open) == 0
    manager.close()
