"""Moves between log directories that a stop cuts short, and starts without a directory."""

from __future__ import annotations

import logging

import pytest

from kafkalite.coordinators.cluster.directories import UNASSIGNED
from kafkalite.coordinators.cluster.events import DeleteTopics
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.env.background import QueuedBackground
from kafkalite.log.names import renamed_directory
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AlterReplicaLogDirsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
    MetadataRequest,
)
from kafkalite.replication.partition import Partition
from kafkalite.sim.disk import CrashDisk
from tests.crash.moves import TOPIC, Life, MoveWorkload, Run, attach, detach
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.log.making import batch, iterate_log

PAGE_CACHE, FSYNC = MoveWorkload(1, is_fsynced=False), MoveWorkload(1, is_fsynced=True)


def begun(workload: MoveWorkload = PAGE_CACHE) -> Run:
    """A topic whose one log is in /one, with records that were acknowledged."""
    run = Run(workload, CrashDisk())
    assert served(run.life).log.home.path == "/one"
    for number in range(20):
        run.promised.append(run.life, b"%d" % number)
    run.life.turn(10)
    assert len(run.promised.acknowledged) == 20
    return run


def served(life: Life) -> Partition:
    assert life.partition is not None
    return life.partition


def move(life: Life, path: str = "/two") -> None:
    life.broker.logs.move(TOPIC, 0, path, served(life).moved)


def fail(life: Life, path: str) -> None:
    [directory] = [each for each in life.broker.logs.directories if each.path == path]
    directory.home.fail(OSError("broken"))


def state_of(life: Life) -> PartitionState:
    state = life.broker.metadata.image.partition(TOPIC, 0)
    assert state is not None
    return state


def named(life: Life) -> str:
    """The path of the directory that the metadata names."""
    [directory_id] = state_of(life).directories
    known = {each.directory_id: each.path for each in life.broker.logs.directories}
    return known.get(directory_id, directory_id.hex())


def interrupted(run: Run) -> CrashDisk:
    """What a process that dies in the middle of a move leaves: the copy lacks the last record."""
    log = served(run.life).log
    log.roll()
    run.promised.append(run.life, b"last")
    run.life.turn(10)
    move(run.life)
    future = run.life.broker.logs.future(TOPIC, 0)
    assert future is not None
    while future.log_end_offset < 20:
        run.life.clock.advance(1)
    assert future.log_end_offset == 20
    return run.life.disk.stopped()


def names(disk: CrashDisk, path: str) -> list[str]:
    return [name for name in disk.list_directory(path) if name.startswith(f"{TOPIC}-")]


# --- a stop in the middle -------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [PAGE_CACHE, FSYNC])
def test_an_incomplete_copy_is_not_served_while_its_source_is_away(
    workload: MoveWorkload, caplog: pytest.LogCaptureFixture
) -> None:
    run = begun(workload)
    disk = interrupted(run)
    gone = detach(disk, ["/one"])
    with caplog.at_level(logging.ERROR):
        life = Life(disk, workload)
    assert life.partition is None
    with pytest.raises(KafkaError) as refused:
        life.broker.partitions.find(TOPIC, 0)
    assert refused.value.code == Error.KAFKA_STORAGE_ERROR
    state = state_of(life)
    assert (state.leader, state.isr) == (-1, ())
    [line] = [line for line in caplog.messages if f"{TOPIC}-0 is offline" in line]
    assert "/one is offline" in line
    assert "put the directory back" in line
    life.turn(1_000)
    life.close()
    disk.before_operation = None
    [name] = names(disk, "/two")
    assert name.endswith("-future")
    attach(disk, gone)
    life = Life(disk.stopped(), workload)
    run.promised.check(served(life))
    run.promised.append(life, b"more")
    life.turn(1_000)
    run.promised.check(served(life))
    assert (served(life).log.home.path, named(life)) == ("/two", "/two")


def test_a_move_goes_on_after_a_stop_and_says_so() -> None:
    broker, target = two_directories()
    broker.env.background = QueuedBackground()  # nothing is read before the stop
    ask_for_move(broker, target)
    broker.clock.advance(10)
    assert described(broker)[target] == {("t", True)}
    broker.broker.logs.abandon()
    broker = broker.started_again()
    assert described(broker)[target] == {("t", True)}
    broker.clock.advance(1_000)
    assert described(broker) == {source_of(target): set(), target: {("t", False)}}
    assert read(broker.partition()) == [b"1", b"2"]
    broker.close()
    assert read(broker.started_again().partition()) == [b"1", b"2"]


def test_a_move_that_goes_on_takes_what_came_meanwhile() -> None:
    run = begun()
    disk = interrupted(run)
    life = Life(disk, PAGE_CACHE)
    for number in range(30):
        run.promised.append(life, b"after %d" % number)
        life.turn(1)
    life.turn(1_000)
    run.promised.check(served(life))
    assert served(life).log.home.path == "/two"
    assert names(disk, "/one") == []


def test_a_move_back_gives_up_what_a_stop_cut_short() -> None:
    run = begun()
    life = Life(interrupted(run), PAGE_CACHE)
    move(life, "/one")
    life.turn(1_000)
    assert (served(life).log.home.path, named(life)) == ("/one", "/one")
    assert names(life.disk, "/two") == []
    run.promised.check(served(life))


def test_a_move_to_another_directory_replaces_what_a_stop_cut_short() -> None:
    run = begun()
    life = Life(interrupted(run), PAGE_CACHE)
    move(life, "/meta")
    life.turn(1_000)
    assert (served(life).log.home.path, named(life)) == ("/meta", "/meta")
    assert names(life.disk, "/one") == names(life.disk, "/two") == []
    run.promised.check(served(life))


def test_a_move_whose_target_fails_is_given_up_and_said(caplog: pytest.LogCaptureFixture) -> None:
    run = begun()
    move(run.life)
    fail(run.life, "/two")
    with caplog.at_level(logging.ERROR):
        run.life.turn(100)
    assert any("cannot be moved to /two" in line for line in caplog.messages)
    assert run.life.broker.logs.future(TOPIC, 0) is None
    run.promised.append(run.life, b"more")
    run.promised.check(served(run.life))
    assert named(run.life) == "/one"


def test_what_the_copy_has_and_a_crash_took_from_the_log_is_not_given_out() -> None:
    run = begun()
    disk = interrupted(run)
    log = disk.open("/one/t-0/00000000000000000000.log")
    log.truncate(log.size() - 1)  # as a power cut may do
    disk.remove("/one/t-0/00000000000000000020.log")
    life = Life(disk, PAGE_CACHE)
    assert served(life).log.log_end_offset == 19
    now_ms = life.clock.now_ms()
    for value in (b"a", b"b", b"c"):
        served(life).append(batch([value], timestamp=now_ms), now_ms)
    life.turn(1_000)
    assert served(life).log.home.path == "/two"
    assert read(served(life))[-4:] == [b"18", b"a", b"b", b"c"]


# --- of two copies --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/one", "/two"])
def test_of_two_copies_that_counts_which_the_metadata_names(path: str) -> None:
    run = begun()
    if path == "/two":
        move(run.life)
        run.life.turn(1_000)
    assert named(run.life) == path
    other = "/one" if path == "/two" else "/two"
    disk = run.life.disk.stopped()
    run.promised.append(Life(disk, PAGE_CACHE), b"in one of them only")
    copy_log(run.life.disk, f"{path}/t-0", f"{other}/t-0", onto=disk)
    life = Life(disk.stopped(), PAGE_CACHE)
    run.promised.check(served(life))
    assert served(life).log.home.path == path
    assert [name.rpartition("-")[2] for name in names(life.disk, other)] == ["stray"]


def test_a_copy_that_the_metadata_does_not_name_is_not_served_while_a_directory_is_away() -> None:
    run = begun()
    disk = run.life.disk.stopped()
    run.promised.append(Life(disk, PAGE_CACHE), b"in one of them only")
    copy_log(run.life.disk, "/one/t-0", "/two/t-0", onto=disk)  # left of a move from there
    disk = disk.stopped()
    gone = detach(disk, ["/one"])
    life = Life(disk, PAGE_CACHE)
    assert life.partition is None
    life.die()
    disk.before_operation = None
    attach(disk, gone)
    run.promised.check(served(Life(disk.stopped(), PAGE_CACHE)))


def copy_log(disk: CrashDisk, source: str, target: str, *, onto: CrashDisk) -> None:
    onto.make_directory(target)
    for name in disk.list_directory(source):
        file = disk.open(f"{source}/{name}")
        onto.create(f"{target}/{name}").write_at(0, file.read_at(0, file.size()))


# --- without a directory --------------------------------------------------------------------------


def test_a_log_whose_directory_is_away_is_not_made_anew_elsewhere() -> None:
    run = begun()
    disk = run.life.disk.stopped()
    gone = detach(disk, ["/one"])
    life = Life(disk, PAGE_CACHE)
    assert life.partition is None
    created = life.broker.create_topic("new", 1)  # which goes where there is room
    assert created.value is None
    life.turn(60_000)
    life.close()
    disk.before_operation = None
    attach(disk, gone)
    life = Life(disk.stopped(), PAGE_CACHE)
    run.promised.check(served(life))
    assert life.broker.partitions.get("new", 0) is not None


def test_a_topic_made_again_while_its_directory_was_away_is_not_touched_by_the_old_log() -> None:
    run = begun()
    disk = run.life.disk.stopped()
    gone = detach(disk, ["/one"])
    life = Life(disk, PAGE_CACHE)
    life.broker.controller.submit(DeleteTopics(DeleteTopicsRequest(topic_names=[TOPIC])))
    life.broker.create_topic(TOPIC, 1)
    now_ms = life.clock.now_ms()
    served(life).append(batch([b"new"], timestamp=now_ms), now_ms)
    life.turn(100)
    life.close()
    disk.before_operation = None
    attach(disk, gone)
    life = Life(disk.stopped(), PAGE_CACHE)
    assert read(served(life)) == [b"new"]
    [aside] = names(life.disk, "/one")
    assert aside.endswith("-stray")


def test_a_moved_log_does_not_come_back_where_it_was_while_its_directory_is_away() -> None:
    run = begun(FSYNC)
    move(run.life)
    disk = run.life.disk
    while not any(name.endswith("-delete") for name in names(disk, "/one")):
        run.life.turn(1)
    run.promised.append(run.life, b"after")
    run.life.turn(3)
    disk = disk.stopped()
    gone = detach(disk, ["/two"])
    life = Life(disk, FSYNC)
    assert life.partition is None
    life.turn(60_000)
    life.die()
    disk.before_operation = None
    attach(disk, gone)
    life = Life(disk.stopped(), FSYNC)
    run.promised.check(served(life))


def test_a_directory_that_fails_while_it_is_used_leaves_its_partitions_without_a_leader() -> None:
    run = begun()
    fail(run.life, "/one")
    run.life.turn(0)
    assert state_of(run.life).leader == -1
    [broker] = run.life.broker.metadata.image.brokers.values()
    assert len(broker.log_dirs) == 2
    with pytest.raises(KafkaError) as refused:
        run.life.broker.partitions.find(TOPIC, 0)
    assert refused.value.code == Error.KAFKA_STORAGE_ERROR
    life = Life(run.life.disk.stopped(), PAGE_CACHE)
    run.promised.check(served(life))


# --- what the metadata names ----------------------------------------------------------------------


def test_the_metadata_names_where_a_log_is_and_where_it_moves() -> None:
    run = begun()
    assert named(run.life) == "/one"
    move(run.life)
    run.life.turn(1_000)
    assert named(run.life) == "/two"
    run.life.close()
    assert named(Life(run.life.disk.stopped(), PAGE_CACHE)) == "/two"


def test_a_log_that_was_carried_to_another_directory_is_named_there() -> None:
    run = begun()
    run.life.close()
    disk = run.life.disk.stopped()
    copy_log(disk, "/one/t-0", "/two/t-0", onto=disk)
    disk.remove_tree("/one/t-0")
    life = Life(disk, PAGE_CACHE)
    life.turn(1)
    assert (served(life).log.home.path, named(life)) == ("/two", "/two")
    run.promised.check(served(life))


def test_a_new_replica_of_several_directories_is_left_to_the_broker_first() -> None:
    broker = WholeBroker({"log.dirs": "/a,/b"})
    broker.create("t")
    topic = broker.context.metadata.image.topics["t"]
    assert topic.partitions[0].directories == (UNASSIGNED,)
    broker.clock.advance(0)
    directory = broker.broker.logs.directory_of(broker.partition().log)
    assert topic.partitions[0].directories == (directory.directory_id,)


# --- asked as clients ask -------------------------------------------------------------------------


def two_directories() -> tuple[WholeBroker, str]:
    """A broker whose topic has two records, and the directory that it is not in."""
    broker = WholeBroker({"log.dirs": "/a,/b"}, disk=CrashDisk())
    broker.create("pad")  # where the metadata is
    broker.create("t")
    broker.append(b"1", b"2")
    broker.clock.advance(10)
    return broker, source_of(broker.partition().log.home.path)


def source_of(path: str) -> str:
    return "/b" if path == "/a" else "/a"


def ask_for_move(broker: WholeBroker, path: str) -> int:
    asked = AlterReplicaLogDirsRequest.Topic(name="t", partitions=[0])
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDirsRequest.Dir(path=path, topics=[asked])]
    )
    [[answer]] = [each.partitions for each in broker.ask(request, 2).results]
    code: int = answer.error_code
    return code


def described(broker: WholeBroker) -> dict[str, set[tuple[str, bool]]]:
    response = broker.ask(DescribeLogDirsRequest(topics=None), 4)
    return {
        each.log_dir: {
            (topic.name, partition.is_future_key)
            for topic in each.topics
            if topic.name == "t"
            for partition in topic.partitions
        }
        for each in response.results
    }


def read(partition: Partition) -> list[bytes | None]:
    return [record.value for record in iterate_log(partition.log)]


def test_clients_are_told_of_a_partition_whose_directory_is_away() -> None:
    broker, _ = two_directories()
    broker.close()
    disk = broker.env.disk
    assert isinstance(disk, CrashDisk)
    detach(disk, ["/b"])
    broker = broker.started_again()
    [topic] = broker.ask(MetadataRequest(topics=[MetadataRequest.Topic(name="t")]), 12).topics
    [partition] = topic.partitions
    assert (partition.error_code, partition.leader_id) == (Error.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == [1]
    assert ask_for_move(broker, "/a") == Error.KAFKA_STORAGE_ERROR


def test_a_reader_of_a_log_that_is_moved_meanwhile_is_no_failed_disk() -> None:
    run = begun()
    log = served(run.life).log
    steps = log.offset_for_time_in_steps(1, None)
    move(run.life)
    run.life.turn(1_000)
    assert log.home.path == "/one"
    assert names(run.life.disk, "/one") == []
    with pytest.raises(KafkaError) as refused:
        for _ in steps:
            pass
    assert refused.value.code == Error.NOT_LEADER_OR_FOLLOWER
    assert log.home.is_online


def test_a_name_that_is_taken_by_nobodys_log_is_not_written_over() -> None:
    broker = WholeBroker({"log.dirs": "/a"})
    disk = broker.env.disk
    disk.make_directory("/a/t-0")
    disk.create("/a/t-0/precious").write_at(0, b"x")
    broker.create("t")
    broker.append(b"1")
    [stray] = [name for name in disk.list_directory("/a") if name.endswith("-stray")]
    assert disk.list_directory(f"/a/{stray}") == ["precious"]
    assert len(stray) == len(renamed_directory("t", 0, "0" * 32, "stray"))


def test_a_directory_with_a_new_id_is_no_broker_that_is_not_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its partitions have no leader until the metadata knows its id, a moment later."""
    run = begun()
    run.life.close()
    disk = run.life.disk
    disk.remove("/one/meta.properties")
    with caplog.at_level(logging.WARNING):
        life = Life(disk.stopped(), PAGE_CACHE)
        life.turn(10)
    run.promised.check(served(life))
    assert not [line for line in caplog.messages if "no leader" in line]
