"""Idempotence and transactions on one partition, before and after restarts."""

import errno
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.log.append import Append
from kafkalite.log.appending import append_as_leader
from kafkalite.log.config import FOREVER, LogConfig, LogSettings
from kafkalite.log.names import LOG_STARTS, RECOVERY_POINTS
from kafkalite.log.partition_log import AppendOrigin
from kafkalite.log.producers import WAIVED
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.batch import MAX_SEQUENCE
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import START_MS, World, batch, committed, marker, read_all

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def send(log, sequence, *, epoch=0, producer_id=5, count=1, verification=None, **fields):
    data = batch(
        [b"v"] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        **fields,
    )
    return append_with(log, data, verification or WAIVED)


def append_with(log, data, verification):
    """Appends what a client sends, with a proof that its coordinator knows of the transaction."""
    return append_as_leader(log, Append(data, now(log), verification=verification, leader_epoch=0))


def now(log):
    return log.home.env.clock.now_ms()


def refused(log, sequence, **fields):
    with pytest.raises(KafkaError) as error:
        send(log, sequence, **fields)
    return error.value.code


def _fail_writes(kind, path, size):
    if kind == "write":
        raise OSError(errno.ENOSPC, "full", path)


def end(log, *, commit, producer_id=5, epoch=0, version=0, coordinator_epoch=0):
    data = marker(producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
    by = {"origin": AppendOrigin.COORDINATOR, "transaction_version": version}
    return append_as_leader(log, Append(data, now(log), leader_epoch=0, **by))


@pytest.mark.parametrize("restart", [None, True, False])
def test_the_last_five_batches_are_recognised(restart):
    world = World(SMALL)
    for index in range(12):
        send(world.log(), index * 2, count=2)
    if restart is not None:
        world.restart(clean=restart)
    log = world.log()
    for index in range(7, 12):
        result = send(log, index * 2, count=2)
        assert result.is_duplicate
        assert (result.base_offset, result.last_offset) == (index * 2, index * 2 + 1)
    assert refused(log, 12, count=2) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, 26, count=2) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not send(log, 24, count=2).is_duplicate
    assert log.log_end_offset == 26


def test_other_batches_between_do_not_push_a_producers_out_of_the_window():
    world = World(SMALL)
    for index in range(5):
        send(world.log(), index)
        for other in range(3):
            send(world.log(), index, producer_id=10 + other)
    log = world.restart(clean=True)
    for index in range(5):
        assert send(log, index).base_offset == index * 4


def test_the_same_sequence_with_another_count_is_out_of_order():
    log = World().log()
    send(log, 0, count=3)
    assert refused(log, 0, count=2) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_producer_may_begin_anywhere_and_a_new_epoch_at_zero():
    log = World().log()
    send(log, 100)
    assert refused(log, 1, epoch=1) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    send(log, 0, epoch=1)
    assert refused(log, 101, epoch=0) == Error.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(("sequence", "code"), [(5, Error.OUT_OF_ORDER_SEQUENCE_NUMBER), (0, None)])
def test_a_segment_is_over_also_when_the_batch_for_the_next_is_refused_or_known(sequence, code):
    """What may be compacted hangs on it: Kafka looks at the producer after it has rolled."""
    world = World(LogConfig(segment_ms=5000))
    log = world.log()
    send(log, 0, timestamp=START_MS)
    if code is not None:
        assert refused(log, sequence, timestamp=START_MS + 6000) == code
    else:
        assert send(log, sequence, timestamp=START_MS + 6000).is_duplicate
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    send(log, 1, timestamp=START_MS)
    assert (log.log_end_offset, log.active.base_offset) == (2, 1)


@pytest.mark.parametrize("first", [0, 7])
def test_nothing_is_the_beginning_of_a_producer_whose_first_batch_the_disk_did_not_take(first):
    world = World(SMALL, disk := CrashDisk())
    log = world.log()
    send(log, 0, producer_id=6)
    disk.before_operation = _fail_writes
    assert refused(log, first, count=2) == Error.KAFKA_STORAGE_ERROR
    disk.before_operation = None
    for sequence in (first + 2, first + 4):  # sent before it was refused
        assert refused(log, sequence, count=2) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    for sequence in (first, first + 2, first + 4):
        assert not send(log, sequence, count=2).is_duplicate
    assert refused(log, first + 8) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("is_expired", [True, False])
def test_what_the_disk_did_not_take_holds_for_its_epoch_and_until_it_expires(is_expired):
    world = World(SMALL, disk := CrashDisk(), LogSettings(producer_id_expiration_ms=1000))
    log = world.log()
    send(log, 0, producer_id=6)
    disk.before_operation = _fail_writes
    assert refused(log, 0) == Error.KAFKA_STORAGE_ERROR
    disk.before_operation = None
    assert refused(log, 1) == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    if is_expired:
        log.expire_producers(START_MS + 1000)
        assert send(log, 1).base_offset == 1
    else:
        assert send(log, 1, epoch=1).base_offset == 1


def test_sequences_wrap():
    log = World().log()
    send(log, 2**31 - 1)
    assert send(log, 0).base_offset == 1
    assert send(log, 2**31 - 1).is_duplicate


def test_producers_expire_when_silent_but_not_within_a_transaction():
    world = World(settings=LogSettings(producer_id_expiration_ms=1000))
    log = world.log()
    send(log, 0)
    send(log, 0, producer_id=6, is_transactional=True)
    world.clock.advance(700_000)
    assert log.producers is not None
    assert sorted(log.producers.states) == [6]


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_knows_no_producers_that_have_expired(clean):
    world = World(SMALL, settings=LogSettings(producer_id_expiration_ms=1000))
    for index in range(12):
        send(world.log(), index)
    send(world.log(), 0, producer_id=6, is_transactional=True)
    world.clock.advance(1000)
    send(world.log(), 0, producer_id=7, timestamp=START_MS + 1)
    log = world.restart(clean=clean)
    assert log.producers is not None
    assert sorted(log.producers.states) == [6, 7]
    assert not send(log, 11).is_duplicate


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("way", ["deletion", "retention"])
def test_a_start_knows_no_producers_of_a_log_that_is_empty(clean, way):
    """As Kafka, which passes over snapshots at or before the start of the log."""
    world = World(LogConfig(segment_bytes=400, retention_ms=10_000 if way == "retention" else -1))
    for index in range(7):
        send(world.log(), index)
    log = committed(world.log())
    if way == "deletion":
        log.delete_records_before(7)
        world.manager.checkpoint(LOG_STARTS)
    else:
        world.clock.advance(20_000)
        world.manager.periodic.retain()
    assert (log.log_start_offset, len(log.active_producers())) == (7, 1)
    log = world.restart(clean=clean)
    assert (log.log_start_offset, log.active_producers()) == (7, [])
    assert send(log, 99).base_offset == 7


@pytest.mark.parametrize("start_of_last", [True, False])
def test_a_start_after_a_kill_knows_no_producers_from_before_the_start(start_of_last):
    world = World(SMALL)
    log = world.log()
    send(log, 0, producer_id=6)
    while len(log.segments) < 4 or log.log_end_offset < log.active.base_offset + 2:
        send(log, log.log_end_offset)
    start = log.active.base_offset - (0 if start_of_last else 1)
    committed(log).delete_records_before(start)
    world.manager.checkpoint(LOG_STARTS)
    world.manager.checkpoint(RECOVERY_POINTS)
    log = world.restart(clean=False)
    assert log.log_start_offset == start
    assert [each.producer_id for each in log.active_producers()] == (
        [5] if start_of_last else [6, 5]
    )


def test_what_a_producer_that_has_expired_decided_is_stable_when_its_marker_is_replicated():
    world = World(settings=LogSettings(producer_id_expiration_ms=1000))
    send(world.log(), 0, is_transactional=True)
    end(world.log(), commit=True)
    world.clock.advance(1000)
    log = world.restart(clean=False)
    log.replicated(1)
    assert (log.active_producers(), log.last_stable_offset) == ([], 0)
    assert committed(log).last_stable_offset == 2


@pytest.mark.parametrize("clean", [True, False])
def test_the_last_stable_offset_waits_for_every_transaction(clean):
    world = World(SMALL)
    log = world.log()
    send(log, 0)
    send(log, 0, producer_id=6, is_transactional=True)
    send(log, 0, producer_id=7, is_transactional=True)
    assert committed(log).last_stable_offset == 1
    end(log, commit=True, producer_id=6)
    assert committed(log).last_stable_offset == 2
    log = committed(world.restart(clean=clean))
    assert log.last_stable_offset == 2
    end(log, commit=False, producer_id=7)
    assert log.last_stable_offset == 2  # the marker is not replicated yet
    assert committed(log).last_stable_offset == 5
    assert log.aborted_transactions(0, 5) == [(7, 2)]
    log = committed(world.restart(clean=clean))
    assert log.aborted_transactions(0, 5) == [(7, 2)]
    assert log.aborted_transactions(0, 2) == []
    assert log.aborted_transactions(5, 9) == []


def test_aborted_transactions_are_found_from_every_segment():
    world = World(SMALL)
    log = world.log()
    spans = []
    for index in range(12):
        start = log.log_end_offset
        for _ in range(3):
            producer_id = 100 + index
            sequence = log.log_end_offset - start
            send(log, sequence, producer_id=producer_id, is_transactional=True)
        end(log, commit=index % 2 == 0, producer_id=producer_id)
        if index % 2:
            spans.append((producer_id, start, log.log_end_offset - 1))
    assert len(log.segments) > 3
    for first in range(0, 48, 5):
        for last in range(first + 1, 49, 7):
            expected = [(p, start) for p, start, stop in spans if stop >= first and start < last]
            found = [x for x in log.aborted_transactions(first, last) if x in expected]
            assert found == expected
    committed(log)
    before = log.aborted_transactions(0, 48)
    assert world.restart(clean=False).aborted_transactions(0, 48) == before
    assert before == [(p, start) for p, start, _ in spans]


def test_a_batch_outside_the_open_transaction_is_refused():
    log = World().log()
    send(log, 0, is_transactional=True)
    assert refused(log, 1) == Error.INVALID_TXN_STATE


def test_markers_of_old_epochs_and_coordinators_are_refused():
    log = World().log()
    send(log, 0, epoch=3, is_transactional=True)
    with pytest.raises(KafkaError) as error:
        end(log, commit=True, epoch=2)
    assert error.value.code == Error.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=3, coordinator_epoch=8)
    with pytest.raises(KafkaError) as error:
        end(log, commit=True, epoch=3, coordinator_epoch=7)
    assert error.value.code == Error.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_of_version_2_has_a_higher_epoch_or_comes_again():
    log = World().log()
    send(log, 0, is_transactional=True)
    with pytest.raises(KafkaError) as error:
        end(log, commit=True, epoch=0, version=2)
    assert error.value.code == Error.INVALID_PRODUCER_EPOCH
    end(log, commit=True, epoch=1, version=2)
    end(log, commit=True, epoch=1, version=2)
    assert refused(log, 1, epoch=0) == Error.INVALID_PRODUCER_EPOCH
    send(log, 0, epoch=1, is_transactional=True)


def test_an_unverified_transaction_is_refused():
    log = World().log()
    data: Any = {
        "producer_id": 5,
        "producer_epoch": 0,
        "base_sequence": 0,
        "is_transactional": True,
    }
    with pytest.raises(KafkaError) as error:
        append_with(log, batch([b"a"], **data), None)
    assert error.value.code == Error.INVALID_TXN_STATE
    proof = log.start_verification(5, 0, 0, supports_epoch_bump=False)
    append_with(log, batch([b"a"], **data), proof)
    assert log.start_verification(5, 1, 0, supports_epoch_bump=False) is None
    data["base_sequence"] = 1
    append_with(log, batch([b"a"], **data), None)
    end(log, commit=True)
    data["base_sequence"] = 2
    with pytest.raises(KafkaError):
        append_with(log, batch([b"a"], **data), proof)


def test_verification_remembers_the_lowest_sequence():
    log = World().log()
    log.start_verification(5, 7, 0, supports_epoch_bump=False)
    proof = log.start_verification(5, 3, 0, supports_epoch_bump=False)
    data: Any = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True}
    with pytest.raises(KafkaError) as error:
        append_with(log, batch([b"a"], base_sequence=7, **data), proof)
    assert error.value.code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    append_with(log, batch([b"a"], base_sequence=3, **data), proof)


def test_a_late_marker_does_not_end_the_verification_of_the_next_transaction():
    log = World().log()
    first = log.start_verification(5, 0, 3, supports_epoch_bump=True)
    send(log, 0, epoch=3, is_transactional=True, verification=first)
    following = log.start_verification(5, 0, 4, supports_epoch_bump=True)
    end(log, commit=True, epoch=4, version=2)
    send(log, 0, epoch=4, is_transactional=True, verification=following)
    assert log.producers is not None
    assert log.producers.states[5].transaction_start == 2


def test_a_marker_ends_the_verification_of_a_write_that_comes_too_late():
    log = World().log()
    late = log.start_verification(5, 0, 3, supports_epoch_bump=False)
    end(log, commit=True, epoch=3)
    with pytest.raises(KafkaError) as error:
        send(log, 0, epoch=3, is_transactional=True, verification=late)
    assert error.value.code == Error.INVALID_TXN_STATE


def test_truncation_takes_producers_back():
    world = World(SMALL)
    log = world.log()
    for index in range(10):
        send(log, index)
    send(log, 0, producer_id=6, is_transactional=True)
    log.truncate_to(8)
    committed(log)
    assert log.last_stable_offset == 8
    assert log.producers is not None
    assert sorted(log.producers.states) == [5]
    assert send(log, 7).is_duplicate
    assert send(log, 8).base_offset == 8


def test_describing_producers():
    log = World().log()
    send(log, 4, count=3, is_transactional=True)
    (state,) = log.active_producers()
    assert (state.producer_id, state.epoch, state.last_sequence) == (5, 0, 6)
    assert (state.last_timestamp, state.transaction_start) == (START_MS, 0)
    assert len(read_all(log)) == 3


def test_nothing_is_written_behind_a_clean_stop():
    """An abort that came between a log's closing and its process's end stood in no index."""
    world = World()
    log = world.log()
    send(log, 0, is_transactional=True)
    world.manager.close()
    with pytest.raises(KafkaError) as error:
        end(log, commit=False)
    assert error.value.code == Error.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 1


BATCHES = st.lists(
    st.tuples(
        st.sampled_from([5, 6]),  # producer
        st.sampled_from([0, 0, 0, 1]),  # epoch
        st.sampled_from([0, 0, 0, 0, -2, -1, 1]),  # from the sequence that comes next
        st.integers(1, 3),  # records
        st.sampled_from([False, False, False, True]),  # in a transaction
        st.sampled_from([None] * 6 + [True, False, "restart"]),  # a marker before it
    ),
    min_size=10,
    max_size=25,
)


def outcome_of(log, batch_fields, following):
    producer_id, epoch, gap, count, is_transactional, before = batch_fields
    try:
        if isinstance(before, bool):
            end(log, commit=before, producer_id=producer_id, epoch=epoch)
        sequence = (following.get(producer_id, 0) + gap) & MAX_SEQUENCE
        result = send(
            log, sequence, epoch=epoch, producer_id=producer_id, count=count,
            is_transactional=is_transactional,
        )  # fmt: skip
    except KafkaError as error:
        return error.code
    following[producer_id] = (sequence + count) & MAX_SEQUENCE
    return result


@settings(max_examples=60, deadline=None)
@given(BATCHES, st.sampled_from([0, MAX_SEQUENCE - 4]))
def test_the_short_way_of_an_append_judges_as_the_long_one(batches, first):
    short = World(LogConfig())
    long = World(LogConfig(message_timestamp_before_max_ms=FOREVER - 1))
    assert short.config.is_plain
    assert not long.config.is_plain
    following = [{5: first, 6: first}, {5: first, 6: first}]
    for one in batches:
        if one[-1] == "restart":
            for world in (short, long):
                committed(world.log())
                world.restart(clean=True)
        outcomes = [
            outcome_of(world.log(), one, known)
            for world, known in zip((short, long), following, strict=True)
        ]
        assert outcomes[0] == outcomes[1]
        assert short.log().active_producers() == long.log().active_producers()
    assert read_all(short.log()) == read_all(long.log())
