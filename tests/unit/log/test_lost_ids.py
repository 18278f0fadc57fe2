"""Whose a log is after a power cut that took its id: never a topic's made anew under its name."""

import logging
from collections.abc import Callable

import pytest

from kafkalite.env import manual_env
from kafkalite.env.background import QueuedBackground
from kafkalite.env.clock import ManualClock
from kafkalite.log.config import FSYNC, LogConfig
from kafkalite.log.loader import topic_id_in
from kafkalite.log.manager import LogManager
from kafkalite.log.mover import NameDirectory, name_nothing
from kafkalite.log.names import PARTITION_METADATA
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.seals import SEALS
from kafkalite.sim.disk import CrashDisk
from tests.unit.log.making import CLUSTER_ID, TOPIC_ID, batch
from tests.unit.log.test_seams import NothingUnsynced

PATHS = ["/one", "/two"]
OTHER_ID = bytes(range(1, 17))


class Machine:
    """A broker with two directories, whose metadata names one of them or none."""

    def __init__(self, config: LogConfig | None = None) -> None:
        self.config = config or LogConfig(file_delete_delay_ms=60_000)
        self.disk = CrashDisk()
        self.topic_id, self.named = TOPIC_ID, ""
        self.name_directory: NameDirectory = name_nothing
        self.start()

    def start(self) -> None:
        self.env = manual_env(disk=self.disk)
        assert isinstance(self.env.clock, ManualClock)
        self.clock: ManualClock = self.env.clock
        self.manager = LogManager(
            self.env, PATHS, node_id=1, cluster_id=CLUSTER_ID,
            config_of=lambda topic: self.config,
            topic_of=lambda topic_id, partition: "t" if topic_id == self.topic_id else None,
            named_directory=lambda topic, partition: self._named(),
            name_directory=lambda log, then: self.name_directory(log, then),
        )  # fmt: skip
        self.manager.start()

    def _named(self) -> bytes | None:
        directories = self.manager.directories
        return next((each.directory_id for each in directories if each.path == self.named), None)

    def log(self, path: str | None = None) -> PartitionLog:
        found = self.manager.create(
            "t", 0, self.topic_id, self.config, directory=path, is_new=path is not None
        )
        assert topic_id_in(self.disk, found.directory) == self.topic_id
        return found

    def after_power_cut(self) -> None:
        """Whatever was not synced is lost."""
        self.manager.abandon()
        self.disk = self.disk.crashed(NothingUnsynced())
        self.start()

    def names(self, path: str) -> list[str]:
        return [name for name in self.disk.list_directory(path) if name.startswith("t-")]


def fill(log: PartitionLog, count: int = 3) -> None:
    for number in range(count):
        log.append_as_leader(batch([b"%d" % number]), 0)


def forget_whose(machine: Machine, log: PartitionLog) -> None:
    machine.disk.remove(f"{log.directory}/{PARTITION_METADATA}")


@pytest.mark.parametrize("named", ["/one", "/two", ""])
def test_without_an_id_it_is_the_topics_where_the_metadata_has_it_and_nowhere_else(
    named: str,
) -> None:
    machine = Machine()
    log = machine.log("/two")
    fill(log)
    forget_whose(machine, log)
    machine.manager.abandon()
    machine.named = named
    machine.start()
    assert machine.log().log_end_offset == (3 if named == "/two" else 0)
    assert any(name.endswith("-stray") for name in machine.names("/two")) == (named != "/two")


def test_a_forerunner_that_a_power_cut_brings_back_without_its_id_is_not_its_heirs() -> None:
    machine = Machine()
    machine.env.background = QueuedBackground()  # nothing is synced by itself
    fill(log := machine.log("/two"))
    for path in machine.disk.list_directory(log.directory):
        if path != PARTITION_METADATA:
            machine.disk.open(f"{log.directory}/{path}").sync()
    forget_whose(machine, log)
    for path in (log.directory, "/two"):
        machine.disk.sync_directory(path)
    machine.manager.delete("t", 0)
    machine.topic_id, machine.named = OTHER_ID, "/two"
    machine.log("/two")
    machine.after_power_cut()
    assert machine.log().log_end_offset == 0


@pytest.mark.parametrize("is_copy_told", [True, False])
def test_a_log_that_lost_its_id_does_not_give_way_to_its_copy(is_copy_told: bool) -> None:
    machine = Machine()
    fill(machine.log("/one"))
    machine.env.background = background = QueuedBackground()
    machine.manager.move("t", 0, "/two")
    machine.clock.advance(2)
    background.run_all()
    copy = machine.manager.future("t", 0)
    assert copy is not None
    assert copy.log_end_offset == 3
    if not is_copy_told:
        forget_whose(machine, copy)
        machine.disk.remove(f"{copy.directory}/{SEALS}")  # which tell it, too, once it is flushed
    fill(machine.log())
    forget_whose(machine, machine.log())
    machine.manager.abandon()
    machine.named = "/one"
    machine.start()
    assert machine.log().log_end_offset == 6
    assert (machine.manager.future("t", 0) is not None) == is_copy_told


def test_whose_a_log_is_lasts_soon_after_its_first_record() -> None:
    """Also where the records may go: or the next start would find records that are nobody's."""
    machine = Machine()
    machine.env.background = background = QueuedBackground()
    fill(machine.log("/two"))
    background.run_all()
    machine.after_power_cut()
    assert topic_id_in(machine.disk, "/two/t-0") == TOPIC_ID


def test_a_log_that_has_never_had_a_record_is_no_stray(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine(LogConfig(file_delete_delay_ms=1))
    machine.log("/one")
    machine.manager.abandon()
    machine.topic_id = OTHER_ID
    with caplog.at_level(logging.WARNING):
        machine.start()
        machine.log()
        machine.clock.advance(1)
    assert machine.names("/one") == ["t-0"]
    assert not caplog.records


def test_strays_are_named_once_at_a_start_and_those_without_records_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = Machine()
    for number, count in enumerate((1, 2, 0)):
        machine.topic_id = bytes([number + 1]) * 16
        fill(machine.log("/one"), count)
        machine.manager.abandon()
        path = f"/one/t-0.{number:032x}-stray"
        machine.disk.rename("/one/t-0", path)
        machine.start()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        machine.manager.abandon()
        machine.start()
        machine.clock.advance(1)
    assert [name.count("t-0.") for name in caplog.text.splitlines()] == [2]
    assert len(machine.names("/one")) == 2


def test_a_copy_without_a_record_lasts_before_its_directory_is_named() -> None:
    machine = Machine()
    fill(log := machine.log("/one"))
    log.replicated(log.log_end_offset)
    log.delete_records_before(3)
    log.flush()
    machine.env.background = background = QueuedBackground()
    asked: list[bytes] = []

    def name_directory(copy: PartitionLog, then: Callable[[], None]) -> None:
        asked.append(topic_id_in(machine.disk.crashed(NothingUnsynced()), copy.directory))
        then()

    machine.name_directory = name_directory
    machine.manager.move("t", 0, "/two")
    for _ in range(100):
        machine.clock.advance(2)
        background.run_all()
    assert machine.log().home.path == "/two"
    assert asked == [TOPIC_ID]


def test_no_directory_is_named_for_a_copy_while_a_power_cut_could_bring_an_older_log_back() -> None:
    """That log would have the partition's own name where the metadata says, and count."""
    machine = Machine(LogConfig(kafkalite_durability=FSYNC, file_delete_delay_ms=60_000))
    fill(machine.log("/one"), 1)
    machine.log().flush()
    machine.env.background = background = QueuedBackground()

    def wait(ms: int, until: str = "") -> None:
        for _ in range(ms // 2):
            if machine.log().home.path == until:
                return
            background.run_all()
            machine.clock.advance(2)

    machine.manager.move("t", 0, "/two")
    wait(100, until="/two")
    slow = background._jobs.popleft()  # the sync after which the log in /one goes
    fill(machine.log())
    asked: list[bool] = []

    def name_directory(copy: PartitionLog, then: Callable[[], None]) -> None:
        asked.append(machine.disk.crashed(NothingUnsynced()).exists("/one/t-0"))
        then()

    machine.name_directory = name_directory
    machine.manager.move("t", 0, "/one")
    wait(3_000)
    background._jobs.append(slow)
    wait(3_000, until="/one")
    assert (machine.log().home.path, machine.log().log_end_offset) == ("/one", 4)
    assert asked == [False]
