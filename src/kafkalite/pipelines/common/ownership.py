"""Who writes where: a lease of each sink, and the mark of who made what lies there.

Owns that two copies of a job never write at once, and that no command writes over what another
made. A lease is a row of files, one for each holder there ever was: who makes the next one holds
it, which only one can. A holder is gone when its processes are, as the machine that it ran on
tells; where that machine cannot be asked, when it has said nothing for `SILENT_S`.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from kafkalite.pipelines.common.outcomes import HeldElsewhere

LEASES = "lease"
OWNER_FILE = "owner.json"
BEAT, RELEASED = "beat", "released"
BEAT_S = 10.0
SILENT_S = 60.0


class Files(Protocol):
    """The small files of a folder, as far as they are needed here."""

    path: str

    def read(self, name: str) -> str | None: ...
    def write(self, name: str, text: str) -> None: ...
    def create(self, name: str, text: str) -> bool: ...
    def names(self, name: str = "") -> list[str]: ...
    def delete(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Process:
    """A process of one machine; `started` tells it from a later one of the same number."""

    pid: int
    started: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes: a command, its processes (Python's and the JVM's), where, and since when."""

    what: str
    host: str
    boot: str
    processes: tuple[Process, ...]
    since: float
    beat: float
    is_released: bool = False

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        pids = ", ".join(str(each.pid) for each in self.processes)
        return f"{self.what} (process {pids} on {self.host}, since {since})"


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that this runs on, and which of its processes live."""

    host: str
    boot: str
    started: Callable[[int], str | None]

    def process(self, pid: int) -> Process:
        return Process(pid, self.started(pid) or "")


def this_machine() -> Machine:
    return Machine(socket.gethostname(), _boot_id(), _started)


def _boot_id() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def _started(pid: int) -> str | None:
    """When a process began, as the kernel counts; None when there is none."""
    try:
        # The name in brackets may hold anything; the 20th field behind it is the start.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        return _alive_elsewhere(pid)
    except (OSError, IndexError):
        return None


def _alive_elsewhere(pid: int) -> str | None:
    """On a system without /proc only whether it lives can be asked."""
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""


def is_gone(holder: Holder, here: Machine, now: float) -> bool:
    """Whether somebody else may take over."""
    if holder.is_released:
        return True
    if holder.host != here.host or not here.boot:
        return now - holder.beat > SILENT_S
    if holder.boot != here.boot:
        return True
    return not any(here.started(each.pid) == each.started for each in holder.processes)


class Lease:
    """One sink's lease, held from `take` to `release`; `check` before each write."""

    def __init__(
        self,
        files: Files,
        what: str,
        pids: tuple[int, ...],
        here: Machine | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._files = files
        self._here = here or this_machine()
        self._clock = clock
        now = clock()
        processes = tuple(self._here.process(pid) for pid in pids)
        self._me = Holder(what, self._here.host, self._here.boot, processes, now, now)
        self._number: int | None = None
        self._ended = threading.Event()
        self._saying = threading.Lock()
        self._said = ""

    def take(self) -> None:
        """Holds it from now on, or raises who does."""
        numbers = self._numbers()
        for number in numbers[-1:]:
            holder = self._holder(number)
            if holder is None or not is_gone(holder, self._here, self._clock()):
                raise self._held(holder, number)
        mine = numbers[-1] + 1 if numbers else 0
        if not self._files.create(f"{LEASES}/{mine}.json", _dump(self._me)):
            raise self._held(self._holder(mine), mine)
        self._number = mine
        for name in self._files.names(LEASES):
            if name.partition(".")[0] in map(str, numbers):
                self._files.delete(f"{LEASES}/{name}")
        threading.Thread(target=self._keep_saying, name="lease", daemon=True).start()

    def check(self) -> None:
        """Raises when somebody took over, because this one had said nothing for long."""
        newest = max(self._numbers(), default=None)
        if newest != self._number:
            holder = None if newest is None else self._holder(newest)
            raise self._held(holder, newest)

    def release(self) -> None:
        self._ended.set()
        with self._saying:
            if self._number is not None:
                self._files.create(f"{LEASES}/{self._number}.{RELEASED}", "")
            self._number = None

    def beat(self) -> None:
        """Says that it lives. No file is ever written over: for a moment it would not be there."""
        with self._saying:
            if self._number is not None:
                before, self._said = self._said, f"{self._number}.{BEAT}.{self._clock() * 1000:.0f}"
                if self._files.create(f"{LEASES}/{self._said}", "") and before:
                    self._files.delete(f"{LEASES}/{before}")

    def _keep_saying(self) -> None:
        while not self._ended.wait(BEAT_S):
            # What cannot be said is silence: another takes over, and `check` tells this one.
            with suppress(Exception):
                self.beat()

    def _numbers(self) -> list[int]:
        names = (name.partition(".") for name in self._files.names(LEASES))
        return sorted(int(number) for number, _, end in names if number.isdigit() and end == "json")

    def _holder(self, number: int) -> Holder | None:
        text = self._files.read(f"{LEASES}/{number}.json")
        holder = _parse(text) if text else None
        if holder is None:
            return None
        said = [name.split(".") for name in self._files.names(LEASES)]
        mine = [each[1:] for each in said if each[0] == str(number)]
        beats = [int(each[1]) / 1000 for each in mine if each[0] == BEAT]
        return replace(holder, beat=max([holder.beat, *beats]), is_released=[RELEASED] in mine)

    def _held(self, holder: Holder | None, number: int | None) -> HeldElsewhere:
        who = (
            str(holder) if holder else f"somebody whose note {LEASES}/{number}.json cannot be read"
        )
        return HeldElsewhere(f"{self._files.path} is held by {who}: wait for its end, or end it")


def _dump(holder: Holder) -> str:
    return json.dumps(asdict(holder))


def _parse(text: str) -> Holder | None:
    try:
        said = json.loads(text)
        processes = tuple(Process(**each) for each in said.pop("processes"))
        return Holder(processes=processes, **said)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


@contextmanager
def held(lease: Lease, wait_s: float = 0.0) -> Iterator[Lease]:
    """Held within; when somebody else holds it, tried again for a while."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            lease.take()
            break
        except HeldElsewhere:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.2)
    try:
        yield lease
    finally:
        # What cannot be released is over with its processes; the failure before is what is told.
        with suppress(Exception):
            lease.release()


def claim(files: Files, owner: dict[str, str], is_used: bool, adopt: bool = False) -> None:
    """Marks a folder as its owner's; refuses one that another owns, or that nobody marked.

    `is_used`: there is something in it.
    """
    text = files.read(OWNER_FILE)
    there: dict[str, str] | None = None if text is None else json.loads(text)
    if there == owner:
        return
    if there is not None and not adopt:
        theirs, ours = (", ".join(f"{k} {v}" for k, v in x.items()) for x in (there, owner))
        raise HeldElsewhere(f"{files.path} is of {theirs}, not of {ours}: give another path")
    if there is None and is_used and not adopt:
        raise HeldElsewhere(
            f"{files.path} holds something already that no {owner['command']} wrote: give another "
            "path, or --adopt to take it over"
        )
    files.write(OWNER_FILE, json.dumps(owner, sort_keys=True))
