"""One supervisor over the processes of a cluster: started, kept, and stopped together.

Owns the processes, the order in which they come and go, and the one log that they write. Who dies
is started again, after a while that grows when it dies at once. Brokers are stopped before their
controller, which they leave in good order; and all end with the supervisor, however it ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

import click

import kafkalite
from kafkalite.cli._banner import EXAMPLES, READY, USUAL_ADDRESS
from kafkalite.cli._members import Member, Members
from kafkalite.cli._port_file import write_port
from kafkalite.cli._signals import ENDING, SUPERVISED, hang_ups

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
QUICK_S = 10.0  # who dies sooner waits longer
START_S = 120.0
STOP_S = 90.0  # a broker asks for a minute to be let go


@dataclass(slots=True, eq=False)
class _Process:
    member: Member
    arguments: list[str] = field(default_factory=list)
    running: subprocess.Popen[bytes] | None = None
    serves: bool = False
    started_s: float = 0.0
    wait_s: float = FIRST_WAIT_S
    due_s: float | None = None  # when it is to be started again

    def start(self) -> None:
        self.due_s, self.serves, self.started_s = None, False, time.monotonic()
        self.running = subprocess.Popen(
            [sys.executable, "-m", "kafkalite", "serve", "-c", self.member.properties,
             *self.arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env={**os.environ, SUPERVISED: "1"},
        )  # fmt: skip

    def tell(self, number: int) -> None:
        if self.running is not None:
            with suppress(OSError):
                self.running.send_signal(number)


_Event = tuple[str, "_Process | None", str]  # what, whose, and its line


class Supervisor:
    """Of one cluster."""

    def __init__(
        self, members: Members, topics: tuple[str, ...], port_file: str | None = None
    ) -> None:
        self._members, self._port_file = members, port_file
        self._controller = _Process(members.controller)
        self._brokers = [_Process(each) for each in members.brokers]
        self._brokers[-1].arguments = [word for topic in topics for word in ("--topic", topic)]
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._is_stopping = self._has_served = False
        self._kill_s: float | None = None  # when those that do not stop are ended
        self._code = 0

    def run(self) -> int:
        """Until it is told to stop; the exit code."""
        for number in ENDING:
            signal.signal(number, lambda *_: self._events.put(("signal", None, "")))
        for hang_up in hang_ups():
            signal.signal(hang_up, lambda *_: self._events.put(("hang-up", None, "")))
        try:
            self._start_all()
            while not self._is_over:
                self._wait()
        finally:
            for each in self._everybody:
                each.tell(signal.SIGKILL)
        return self._code

    @property
    def _everybody(self) -> list[_Process]:
        return [self._controller, *self._brokers]

    @property
    def _is_over(self) -> bool:
        return self._is_stopping and all(each.running is None for each in self._everybody)

    # --- starting ---------------------------------------------------------------------------------

    def _start_all(self) -> None:
        """The last broker, which creates the first topics, when the others serve."""
        groups = [[self._controller], self._brokers]
        if self._brokers[-1].arguments:
            groups = [[self._controller], self._brokers[:-1], self._brokers[-1:]]
        for group in groups:
            for each in group:
                self._start(each)
            end_s = time.monotonic() + START_S
            while not self._is_stopping and not all(each.serves for each in group):
                if time.monotonic() > end_s:
                    self._give_up(f"the cluster does not serve within {START_S:g} s")
                self._wait()
        if not self._is_stopping:
            self._has_served = True
            self._show_banner()
            self._write_port()

    def _start(self, process: _Process) -> None:
        if self._is_stopping:
            return
        process.start()
        running = process.running
        assert running is not None
        for name in ("stdout", "stderr"):
            threading.Thread(target=self._read, args=(process, running, name), daemon=True).start()

    def _read(self, process: _Process, running: subprocess.Popen[bytes], name: str) -> None:
        """On a thread of its own: what a process says, and with its standard output its end."""
        with getattr(running, name) as pipe:
            for line in pipe:
                self._events.put((name, process, line.decode(errors="replace").rstrip()))
        if name == "stdout":
            running.wait()
            assert running.stdin is not None
            running.stdin.close()
            self._events.put(("end", process, str(running.returncode)))

    def _write_port(self) -> None:
        try:
            if self._port_file is not None:
                write_port(self._port_file, int(self._members.addresses[0].rpartition(":")[2]))
        except OSError as error:
            self._give_up(str(error))

    def _show_banner(self) -> None:
        click.echo(f"kafkalite {kafkalite.__version__}, compatible with the Apache Kafka protocol")
        for each, address in zip(self._members.brokers, self._members.addresses, strict=True):
            click.echo(f"  listen  {address} ({each.name}, data in {each.directory})")
        click.echo(f"  control by {self._members.controller.settings['listeners']}")
        first = self._members.addresses[0]
        where = "" if first == USUAL_ADDRESS else f"-b {first} "
        click.echo(EXAMPLES.format(where=where), nl=False)
        for line in READY:
            click.echo(line.format(node=1))

    # --- what happens -----------------------------------------------------------------------------

    def _wait(self) -> None:
        due = [each.due_s for each in self._everybody if each.due_s is not None]
        if self._kill_s is not None:
            due.append(self._kill_s)
        left_s = min(due, default=time.monotonic() + 1.0) - time.monotonic()
        with suppress(Empty):
            self._take(*self._events.get(timeout=max(left_s, 0.0)))
        for each in self._everybody:
            if each.due_s is not None and each.due_s <= time.monotonic():
                self._start(each)
        if self._kill_s is not None and self._kill_s <= time.monotonic():
            self._kill()

    def _take(self, what: str, process: _Process | None, line: str) -> None:
        if process is None:
            if what == "signal" or not self._is_stopping:  # a terminal that goes is not impatient
                self._signalled()
        elif what == "end":
            self._ended(process, int(line))
        elif what == "stderr":
            _log(process.member.name, line)
        elif line == READY[0].format(node=process.member.node_id):
            process.serves = True

    def _ended(self, process: _Process, code: int) -> None:
        process.running, process.serves = None, False
        name = process.member.name
        if self._is_stopping:
            self._stop_controller()
        elif not self._has_served:
            self._give_up(f"{name} does not start")
        else:
            is_quick = time.monotonic() - process.started_s < QUICK_S
            process.wait_s = min(process.wait_s * 2, LONGEST_WAIT_S) if is_quick else FIRST_WAIT_S
            process.due_s = time.monotonic() + process.wait_s
            _log(name, f"ended with {code}, and is started again in {process.wait_s:g} s")

    def _give_up(self, why: str) -> None:
        click.echo(f"kafkalite cannot start: {why}", err=True)
        self._code = 1
        self._stop()

    # --- stopping ---------------------------------------------------------------------------------

    def _signalled(self) -> None:
        if self._is_stopping:
            for each in self._everybody:
                each.tell(signal.SIGKILL)
            self._code = 1
            return
        with suppress(OSError):  # the terminal may have gone
            click.echo("kafkalite is stopping; once more to stop at once", err=True)
        self._stop()

    def _stop(self) -> None:
        self._is_stopping, self._kill_s = True, time.monotonic() + STOP_S
        for each in self._everybody:
            each.due_s = None
        for each in self._brokers:
            each.tell(signal.SIGTERM)
        self._stop_controller()

    def _kill(self) -> None:
        """Brokers that do not stop, then the controller when it has none that needs it."""
        left = [each for each in self._brokers if each.running] or [self._controller]
        for each in left:
            _log(each.member.name, f"does not stop within {STOP_S:g} s, and is killed")
            each.tell(signal.SIGKILL)
        self._code, self._kill_s = 1, time.monotonic() + STOP_S

    def _stop_controller(self) -> None:
        """When no broker needs it any more."""
        if all(each.running is None for each in self._brokers):
            self._controller.tell(signal.SIGTERM)


def _log(name: str, line: str) -> None:
    with suppress(OSError):
        click.echo(f"[{name}] {line}", err=True)
