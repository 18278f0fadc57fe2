"""All logs of a broker: creation, deletion, retention, moves between directories."""

import pytest

from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.log.config import COMPACT, LogConfig, LogSettings
from kafkalite.log.manager import LogManager
from kafkalite.log.partition_log import PartitionLog
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.records.record import BatchBuilder
from tests.unit.log.making import (
    CLUSTER_ID,
    ROOT,
    START_MS,
    TOPIC_ID,
    World,
    abandon,
    batch,
    committed,
    open_logs,
    read_all,
)  # fmt: skip

SMALL = LogConfig(segment_bytes=300, index_interval_bytes=100)


def fill(log, count=30, **fields):
    for index in range(count):
        log.append_as_leader(batch([b"%03d" % index], **fields), 0)
    return committed(log)


# --- coming and going -----------------------------------------------------------------------------


def test_a_log_is_created_once_and_found_again():
    world = World()
    log = world.log("t", 3)
    assert world.manager.create("t", 3, TOPIC_ID) is log
    assert world.manager.get("t", 3) is log
    assert world.manager.get("t", 4) is None
    world.manager.close()
    manager = open_logs(world.env)
    found = manager.get("t", 3)
    assert found is not None
    assert found.topic_id == TOPIC_ID


def test_a_log_of_an_earlier_topic_is_set_aside_and_not_used():
    world = World()
    fill(world.log())
    log = world.manager.create("t", 0, bytes(15) + b"x")
    assert log.log_end_offset == 0
    names = [n for n in world.disk.list_directory(ROOT) if n.startswith("t-")]
    assert [name.rpartition("-")[2] for name in names] == ["0", "stray"]


def test_a_log_whose_topic_id_was_lost_is_told_it_again():
    world = World()
    fill(world.log())
    world.manager.close()
    world.disk.create(f"{ROOT}/t-0/partition.metadata")
    world.manager = open_logs(world.env)
    log = world.manager.create("t", 0, TOPIC_ID)
    assert (log.log_end_offset, log.topic_id) == (30, TOPIC_ID)
    world.manager.close()
    found = open_logs(world.env).get("t", 0)
    assert found is not None
    assert found.topic_id == TOPIC_ID


def test_a_deleted_log_is_gone_at_once_and_its_files_later():
    world = World(LogConfig(file_delete_delay_ms=1000))
    fill(world.log())
    world.manager.delete("t", 0)
    assert world.manager.get("t", 0) is None
    (name,) = [n for n in world.disk.list_directory(ROOT) if n.startswith("t-")]
    assert name.endswith("-delete")
    log = world.log()
    assert log.log_end_offset == 0
    world.clock.advance(1000)
    names = [n for n in world.disk.list_directory(ROOT) if n.startswith("t-")]
    assert names == ["t-0"]


def test_files_are_removed_off_the_loop_and_by_one_worker_at_a_time():
    world = World(LogConfig(file_delete_delay_ms=1000))
    background = world.env.background = QueuedBackground()
    for topic in ("a", "b", "c"):
        fill(world.log(topic))
        world.manager.delete(topic, 0)
    world.clock.advance(999)
    background.run_all()
    world.clock.advance(1)
    assert len(background) == 1
    assert sum(name.endswith("-delete") for name in world.disk.list_directory(ROOT)) == 3
    background.run_all()
    assert not any(name.endswith("-delete") for name in world.disk.list_directory(ROOT))


def test_nothing_more_is_removed_once_the_directory_is_closed():
    world = World(LogConfig(file_delete_delay_ms=1000))
    background = world.env.background = QueuedBackground()
    fill(world.log())
    world.manager.delete("t", 0)
    world.clock.advance(1000)
    world.manager.directories[0].home.refuse_writes()
    background.run_all()
    assert any(name.endswith("-delete") for name in world.disk.list_directory(ROOT))


def test_what_is_being_sent_can_be_read_after_deletion():
    world = World(SMALL)
    fill(world.log())
    found = world.log().read(0, 1000).range
    assert found is not None
    before = found.read()
    world.manager.delete("t", 0)
    assert found.read() == before


def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start():
    world = World()
    fill(world.log())
    world.manager.delete("t", 0)
    world.restart(clean=False)
    world.clock.advance(0)
    assert not any(name.endswith("-delete") for name in world.disk.list_directory(ROOT))


def test_the_longest_topic_name_can_be_deleted():
    world = World()
    world.manager.create("t" * 249, 0, TOPIC_ID)
    world.manager.delete("t" * 249, 0)
    assert all(len(name) <= 255 for name in world.disk.list_directory(ROOT))


# --- retention ------------------------------------------------------------------------------------


def test_old_segments_go_by_record_time():
    world = World(LogConfig(segment_bytes=300, retention_ms=10_000))
    fill(world.log(), timestamp=START_MS)
    fill(world.log(), timestamp=START_MS + 50_000)
    world.clock.advance(10_001)
    world.manager.periodic.retain()
    log = world.log()
    assert 0 < log.log_start_offset <= 30
    assert log.log_start_offset == log.segments[0].base_offset
    assert read_all(log)[0].offset == log.log_start_offset


def test_everything_may_be_too_old():
    world = World(LogConfig(segment_bytes=300, retention_ms=10_000))
    fill(world.log())
    world.clock.advance(20_000)
    world.manager.periodic.retain()
    log = world.log()
    assert (log.log_start_offset, log.log_end_offset) == (30, 30)
    assert read_all(log) == []
    assert log.append_as_leader(batch([b"a"]), 0).base_offset == 30
    assert world.restart(clean=False).log_start_offset == 30


def test_nothing_above_the_high_watermark_goes():
    world = World(LogConfig(segment_bytes=300, retention_ms=10_000))
    fill(world.log())
    world.log().watermark.lower_to(5)
    world.clock.advance(20_000)
    world.manager.periodic.retain()
    assert world.log().log_start_offset <= 5


def test_retention_by_size_keeps_at_least_that_much():
    world = World(LogConfig(segment_bytes=300, retention_bytes=1000, retention_ms=-1))
    fill(world.log(), 60)
    world.manager.periodic.retain()
    assert 1000 <= world.log().size < 1300 + 300


def test_a_compacted_topic_is_not_cut_by_time():
    world = World(LogConfig(cleanup_policy=(COMPACT,), segment_bytes=300, retention_ms=1))
    for _ in range(30):
        world.log().append_as_leader(batch([b"v"], keys=[b"k"]), 0)
    committed(world.log())
    world.clock.advance(1000)
    world.manager.periodic.retain()
    assert world.log().log_start_offset == 0


def test_deleted_records_are_gone_for_readers_at_once_and_after_a_restart():
    world = World(SMALL)
    fill(world.log())
    assert world.log().delete_records_before(17) == 17
    with pytest.raises(KafkaError) as refused:
        world.log().read(16, 100)
    assert refused.value.code == Error.OFFSET_OUT_OF_RANGE
    for offset in (-2, 31):
        with pytest.raises(KafkaError):
            world.log().delete_records_before(offset)
    world.manager.periodic.retain()
    assert world.log().segments[0].base_offset > 0
    assert world.restart(clean=True).log_start_offset == 17
    assert world.log().delete_records_before(-1) == world.log().high_watermark


def test_deleted_records_stay_deleted_after_a_kill_once_any_topic_was_deleted():
    """Apache Kafka writes down where all logs begin whenever it deletes one."""
    world = World(SMALL)
    fill(world.log())
    world.log("another")
    world.log().delete_records_before(17)
    assert world.restart(clean=False).log_start_offset == 0
    world.log("another")
    committed(world.log()).delete_records_before(17)
    world.manager.delete("another", 0)
    world.clock.advance(100)
    assert world.restart(clean=False).log_start_offset == 17


def test_files_of_old_segments_vanish_later_so_that_readers_can_finish():
    world = World(LogConfig(segment_bytes=300, retention_ms=10_000, file_delete_delay_ms=60_000))
    fill(world.log())
    found = world.log().read(0, 100).range
    assert found is not None
    before = found.read()
    world.clock.advance(20_000)
    world.manager.periodic.retain()
    assert found.read() == before
    assert any(name.endswith(".deleted") for name in world.names())
    world.clock.advance(60_000)
    assert not any(name.endswith(".deleted") for name in world.names())


# --- periodic work --------------------------------------------------------------------------------


def test_checkpoints_are_written_in_time_and_only_when_something_changed():
    world = World()
    fill(world.log())
    world.clock.advance(5000)
    path = f"{ROOT}/replication-offset-checkpoint"
    assert world.disk.open(path).read_at(0, 100) == b"0\n1\nt 0 30\n"
    world.disk.remove(path)
    world.clock.advance(5000)
    assert not world.disk.exists(path)
    fill(world.log(), 1)
    world.clock.advance(5000)
    assert world.disk.open(path).read_at(0, 100) == b"0\n1\nt 0 31\n"


def test_flush_ms_moves_the_recovery_point():
    world = World(LogConfig(flush_ms=3000))
    fill(world.log())
    assert world.log().recovery_point == 0
    world.clock.advance(4000)
    assert world.log().recovery_point == 30


def test_flush_messages_moves_the_recovery_point():
    world = World(LogConfig(flush_messages=10))
    fill(world.log(), 25)
    assert world.log().recovery_point == 20


def test_flush_messages_of_one_means_that_nothing_is_acknowledged_before_it_is_durable():
    world = World(LogConfig(flush_messages=1))
    background = world.env.background = QueuedBackground()
    log = world.log()
    assert not log.is_durable_on_append
    log.append_as_leader(batch([b"a"]), 0)
    later = log.when_durable(1)
    assert not later.is_resolved
    background.run_all()
    world.clock.advance(0)
    assert later.value is None


# --- moving ---------------------------------------------------------------------------------------


def two_directories(env):
    manager = LogManager(
        env, ["/one", "/two"], node_id=1, cluster_id=CLUSTER_ID,
        settings=LogSettings(log_cleaner_enable=False), config_of=lambda topic: SMALL,
    )  # fmt: skip
    manager.start()
    return manager


def test_a_log_moves_to_another_directory_while_it_is_written():
    env = manual_env()
    manager = two_directories(env)
    log = manager.create("t", 0, TOPIC_ID, SMALL, directory="/one")
    fill(log, 200)
    log.delete_records_before(50)
    moved: list[PartitionLog] = []
    manager.move("t", 0, "/two", moved.append)
    fill(log, 20)
    assert manager.future("t", 0) is not None
    before = read_all(log)
    env.clock.advance(1000)  # type: ignore[attr-defined]
    (new,) = moved
    assert manager.get("t", 0) is new
    assert manager.future("t", 0) is None
    assert new.directory == "/two/t-0"
    assert read_all(new) == before
    assert (new.high_watermark, new.log_start_offset) == (220, 50)
    assert new.epochs.entries() == [(0, 50)]
    new.append_as_leader(batch([b"a"]), 0)
    manager.close()
    manager = two_directories(env)
    found = manager.get("t", 0)
    assert found is not None
    assert found.log_end_offset == 221
    env.clock.advance(100_000)  # type: ignore[attr-defined]
    assert not any(name.startswith("t-") for name in env.disk.list_directory("/one"))


def test_a_move_keeps_the_gaps_that_compaction_left_over_a_stop_that_was_not_clean():
    env = manual_env()
    manager = two_directories(env)
    log = manager.create("t", 0, TOPIC_ID, SMALL, directory="/one")
    for offset in range(0, 300, 7):
        builder = BatchBuilder()
        builder.append(START_MS, b"key", b"%d" % offset)
        log.append_as_follower(builder.build(offset), 1)
    before = read_all(committed(log))
    manager.move("t", 0, "/two")
    env.clock.advance(1000)  # type: ignore[attr-defined]
    assert manager.get("t", 0) is not log
    abandon(manager)
    found = two_directories(env).get("t", 0)
    assert found is not None
    assert found.directory == "/two/t-0"
    assert [(each.offset, each.value) for each in read_all(found)] == [
        (each.offset, each.value) for each in before
    ]


def test_a_move_that_was_interrupted_between_its_renames_is_completed():
    env = manual_env()
    manager = two_directories(env)
    log = manager.create("t", 0, TOPIC_ID, SMALL, directory="/one")
    fill(log, 20)
    manager.close()
    env.disk.rename("/one/t-0", f"/one/t-0.{'a' * 32}-future")
    manager = two_directories(env)
    found = manager.get("t", 0)
    assert found is not None
    assert found.directory == "/one/t-0"
    assert found.log_end_offset == 20
    assert env.disk.is_directory("/one/t-0")


def test_a_move_back_cancels_and_an_unknown_directory_is_refused():
    env = manual_env()
    manager = two_directories(env)
    log = manager.create("t", 0, TOPIC_ID, SMALL, directory="/one")
    fill(log, 20)
    manager.move("t", 0, "/two")
    manager.move("t", 0, "/one")
    assert manager.future("t", 0) is None
    env.clock.advance(1000)  # type: ignore[attr-defined]
    assert manager.get("t", 0) is log
    with pytest.raises(KafkaError) as refused:
        manager.move("t", 0, "/three")
    assert refused.value.code == Error.LOG_DIR_NOT_FOUND
