"""Leases and marks: one writer at a time, whoever dies, and nobody writes over another's."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafkalite.pipelines.common import ownership
from kafkalite.pipelines.common.files import create_here
from kafkalite.pipelines.common.outcomes import HeldElsewhere
from kafkalite.pipelines.common.ownership import (
    SILENT_S,
    Lease,
    Machine,
    Process,
    claim,
    held,
    this_machine,
)


class Memory:
    """A folder whose files are a dict, with the one promise that `create` makes."""

    def __init__(self) -> None:
        self.path = "lake/_kafkalite"
        self.files: dict[str, str] = {}
        self._lock = threading.Lock()

    def read(self, name: str) -> str | None:
        return self.files.get(name)

    def write(self, name: str, text: str) -> None:
        self.files[name] = text

    def create(self, name: str, text: str) -> bool:
        with self._lock:
            return self.files.setdefault(name, text) is text

    def names(self, name: str = "") -> list[str]:
        beginning = f"{name}/"
        return sorted(
            x.removeprefix(beginning) for x in list(self.files) if x.startswith(beginning)
        )

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


class World:
    """Machines with processes that live and die, and a clock."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.living: dict[tuple[str, int], str] = {}

    def machine(self, host: str = "a", boot: str = "1") -> Machine:
        return Machine(host, boot, lambda pid: self.living.get((host, pid)))

    def lease(self, files: Memory, pids: tuple[int, ...], **where: str) -> Lease:
        machine = self.machine(**where)
        for pid in pids:
            self.living.setdefault((machine.host, pid), f"start-{pid}")
        return Lease(files, "to-lake lake", pids, machine, lambda: self.now)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    # Beats come by hand.
    monkeypatch.setattr(ownership, "BEAT_S", 3600.0)
    return World()


def test_a_second_copy_is_told_who_holds_it_and_since_when(world: World) -> None:
    files = Memory()
    world.lease(files, (10, 11)).take()
    world.now += 500
    with pytest.raises(HeldElsewhere) as told:
        world.lease(files, (20,)).take()
    assert str(told.value) == (
        "lake/_kafkalite is held by to-lake lake (process 10, 11 on a, since "
        "1970-01-12 13:46:40 UTC): wait for its end, or end it"
    )
    assert told.value.exit_code == 4


def test_after_an_end_in_good_order_the_next_one_holds_it(world: World) -> None:
    files = Memory()
    for pid in (10, 20, 30):
        with held(world.lease(files, (pid,))) as lease:
            lease.check()
    assert files.names("lease") == ["2.json", "2.released"]


def test_a_beat_never_takes_the_note_away(world: World) -> None:
    """Who writes over a file takes it away for a moment, in which another would hold it."""
    files = Memory()
    lease = world.lease(files, (10,))
    lease.take()
    changed: list[str] = []
    files.write = lambda name, text: changed.append(name)  # type: ignore[method-assign]
    for _ in range(3):
        world.now += 10
        lease.beat()
    assert changed == []
    assert files.names("lease") == ["0.beat.1000030000", "0.json"]


def test_the_jvm_that_still_writes_holds_it_too(world: World) -> None:
    """kill -9 of Python leaves its JVM for a moment."""
    files = Memory()
    world.lease(files, (10, 11)).take()
    del world.living["a", 10]
    with pytest.raises(HeldElsewhere):
        world.lease(files, (20,)).take()
    del world.living["a", 11]
    world.lease(files, (20,)).take()


def test_a_process_of_the_same_number_is_another_one(world: World) -> None:
    files = Memory()
    world.lease(files, (10,)).take()
    world.living["a", 10] = "started-later"
    world.lease(files, (20,)).take()


def test_a_machine_that_was_started_anew_has_none_of_its_processes(world: World) -> None:
    files = Memory()
    world.lease(files, (10,)).take()
    world.lease(files, (10,), boot="2").take()


def test_on_another_machine_silence_tells(world: World) -> None:
    files = Memory()
    first = world.lease(files, (10,))
    first.take()
    world.now += SILENT_S - 1
    first.beat()
    world.now += SILENT_S - 1
    with pytest.raises(HeldElsewhere):
        world.lease(files, (10,), host="b").take()
    world.now += 2
    second = world.lease(files, (10,), host="b")
    second.take()
    second.check()
    # The first was only cut off: it is told before it writes again, and cannot take it back so.
    with pytest.raises(HeldElsewhere, match="on b"):
        first.check()
    first.beat()
    first.release()
    second.check()


def test_of_those_that_start_in_the_same_moment_one_holds_it(world: World) -> None:
    """Also when what was there has to be taken over."""
    for _ in range(50):
        files = Memory()
        old = world.lease(files, (1,))
        old.take()
        del world.living["a", 1]
        leases = [world.lease(files, (10 + number,)) for number in range(8)]
        won: list[Lease] = []
        barrier = threading.Barrier(len(leases))

        def take(lease: Lease, won: list[Lease] = won, together: Any = barrier) -> None:
            together.wait()
            try:
                lease.take()
                won.append(lease)
            except HeldElsewhere:
                pass

        threads = [threading.Thread(target=take, args=(lease,)) for lease in leases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].check()
        for each in [old, *leases]:
            each.release()


def test_a_note_that_cannot_be_read_holds(world: World) -> None:
    files = Memory()
    files.write("lease/7.json", "{")
    with pytest.raises(HeldElsewhere, match=r"lease/7\.json cannot be read"):
        world.lease(files, (1,)).take()


def test_this_machine_tells_its_processes_apart() -> None:
    here = this_machine()
    assert here.started(os.getpid()) is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        process = here.process(child.pid)
        assert here.started(child.pid) == process.started != ""
        child.kill()
    assert here.started(child.pid) is None
    assert not ownership.is_gone(
        ownership.Holder("x", here.host, here.boot, (here.process(os.getpid()),), 0, 0), here, 1e9
    )
    dead = replace(process, pid=child.pid)
    assert ownership.is_gone(
        ownership.Holder("x", here.host, here.boot, (dead,), 0, 1e9), here, 1e9
    )
    assert isinstance(process, Process)


LAKE, SNAPSHOT = {"command": "to-lake"}, {"command": "snapshot"}


def test_what_another_command_made_is_refused_by_name() -> None:
    files = Memory()
    claim(files, LAKE, is_used=False)
    claim(files, LAKE, is_used=True)
    with pytest.raises(HeldElsewhere, match="is of command to-lake, not of command snapshot"):
        claim(files, SNAPSHOT, is_used=True)
    assert json.loads(files.files["owner.json"]) == LAKE


def test_what_nobody_marked_is_refused_unless_it_is_adopted() -> None:
    files = Memory()
    with pytest.raises(HeldElsewhere, match="no snapshot wrote: give another path, or --adopt"):
        claim(files, SNAPSHOT, is_used=True)
    assert files.files == {}
    claim(files, SNAPSHOT, is_used=True, adopt=True)
    claim(files, SNAPSHOT, is_used=True)


def test_a_file_is_made_by_one_alone_and_is_there_whole(tmp_path: Path) -> None:
    texts = [f"{number}" * 100_000 for number in range(8)]
    made: list[str] = []
    barrier = threading.Barrier(len(texts))

    def make(text: str) -> None:
        barrier.wait()
        if create_here(tmp_path / "lease" / "0.json", text):
            made.append(text)

    threads = [threading.Thread(target=make, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in (tmp_path / "lease").iterdir()] == ["0.json"]
    assert [(tmp_path / "lease" / "0.json").read_text()] == made
