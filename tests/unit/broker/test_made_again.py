"""A topic that is made again while its forerunner's logs are on their way off the disk."""

from __future__ import annotations

import errno
import re
from typing import Any

import pytest

from kafkalite.log.checkpoints import read_offsets
from kafkalite.log.directory import LogDirectory
from kafkalite.log.names import LOG_STARTS
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteRecordsRequest
from kafkalite.sim.disk import CrashDisk
from tests.unit.beside import Beside
from tests.unit.broker.turns import creation, deletion
from tests.unit.handlers.whole_broker import WholeBroker

PARTITIONS = 40


class Workers(Beside):
    """Who waits for the disk beside them, and in what order the disk is changed."""

    def __init__(self) -> None:
        super().__init__()
        self.on_loop: list[str] = []
        self.changes: list[str] = []

    def look(self, kind: str, path: str, size: int) -> None:
        self.changes.append(f"{kind} {path}")
        if self.is_loop and kind in ("sync", "sync_directory"):
            self.on_loop.append(f"{kind} {path}")


class Again:
    """A broker whose topic t is deleted, and is to be made again; checkpoints may tell of it."""

    def __init__(self, *, is_told: bool = True) -> None:
        self.workers = Workers()
        self.disk = CrashDisk()
        self.broker = WholeBroker(
            {"kafkalite.durability": "fsync"}, disk=self.disk, background=self.workers
        )
        self.go_on()
        self.do(creation(PARTITIONS, "t"), 7)
        for index in range(PARTITIONS):
            self.broker.append(b"a", b"b", index=index)
        self.go_on()
        if is_told:
            self._move_start()
        self.disk.before_operation = self.workers.look
        self.broker.send(deletion("t"), 5)

    def _move_start(self) -> None:
        asked = DeleteRecordsRequest.Topic(
            name="t",
            partitions=[DeleteRecordsRequest.Partition(partition_index=0, offset=1)],
        )
        self.do(DeleteRecordsRequest(topics=[asked], timeout_ms=1), 2)
        self.go_on(100_000)
        assert ("t", 0) in self.log_starts()

    def go_on(self, duration_ms: int = 50) -> None:
        for _ in range(10):
            self.broker.clock.advance(duration_ms // 10)
            self.workers.run_all()

    def do(self, request: Any, version: int) -> Any:
        came = self.broker.send(request, version)
        self.go_on()
        assert came.is_resolved
        return came.value

    def log_starts(self) -> dict[tuple[str, int], int]:
        return read_offsets(self.disk, f"/data/{LOG_STARTS}")

    @property
    def served(self) -> int:
        return sum(each.topic == "t" for each in self.broker.broker.partitions)


def test_the_loop_waits_for_no_disk_when_a_topic_is_made_again() -> None:
    again = Again()
    assert again.do(creation(PARTITIONS, "t"), 7).topics[0].error_code == Error.NONE
    assert again.served == PARTITIONS
    assert again.workers.on_loop == []
    assert ("t", 0) not in again.log_starts()
    again.broker.close()


@pytest.mark.parametrize("is_told", [True, False])
def test_the_new_names_of_the_old_logs_last_before_the_new_ones_are_made(is_told: bool) -> None:
    again = Again(is_told=is_told)
    again.do(creation(PARTITIONS, "t"), 7)
    changes = again.workers.changes
    renamed = [at for at, each in enumerate(changes) if re.fullmatch(r"rename /data/t-\d+", each)]
    made = [at for at, each in enumerate(changes) if each.startswith("make_directory /data/t-")]
    assert len(renamed) == len(made) == PARTITIONS
    assert "sync_directory /data" in changes[max(renamed) : min(made)]
    forgotten = f"rename /data/{LOG_STARTS}"
    assert is_told is any(each.startswith(forgotten) for each in changes[: min(made)])
    again.broker.close()


def test_one_sync_is_for_all() -> None:
    again = Again()
    again.do(creation(PARTITIONS, "t"), 7)
    assert again.workers.changes.count("sync_directory /data") < PARTITIONS
    again.broker.close()


def test_a_checkpoint_that_cannot_be_written_keeps_the_new_logs_from_being_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    again = Again()
    stage = "kafkalite.log.directory.stage_offsets"

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(stage, full)
        again.do(creation(PARTITIONS, "t"), 7)
    assert again.served == 0
    assert len(again.broker.broker.partitions.offline) == PARTITIONS
    again.broker.close()


def test_a_checkpoint_that_is_under_way_is_waited_for_and_written_again() -> None:
    again = Again()
    directory = again.broker.broker.logs.directories[0]
    assert isinstance(directory, LogDirectory)
    again.broker.clock.advance(0)
    stale = again.log_starts() | {("t", 1): 1}
    directory.write_later(LOG_STARTS, stale)
    again.do(creation(PARTITIONS, "t"), 7)
    assert again.served == PARTITIONS
    assert not {("t", 0), ("t", 1)} & again.log_starts().keys()
    again.broker.close()
