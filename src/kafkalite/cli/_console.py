"""`kafkalite serve --console`: the broker's own console, a process beside it.

Owns that process: where it listens (the address is taken before anything of the broker is
touched), how it finds the broker (by the protocol, as any client), and the one thing that the
protocol does not tell, who is connected. It ends when the broker does; when it ends by itself, the
broker goes on.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from kafkalite.broker import Broker
from kafkalite.cli._addresses import Address, listening
from kafkalite.cli._console_options import OPTION, ConsoleWanted
from kafkalite.cli._port_file import write_port
from kafkalite.cli.console import (
    ALLOW_CHANGES,
    ALLOW_HOST,
    REGISTRY,
    check_exposed,
    check_installed,
    url_of,
    ways_in,
)
from kafkalite.config.listeners import PLAINTEXT, SASL_PROTOCOLS
from kafkalite.config.properties import as_properties
from kafkalite.env.slicing import LOOKS_PER_STEP, Steps, Work, caught
from kafkalite.security.client_settings import PROTOCOL

MOST_ROWS, MOST_CHARACTERS = 1_000, 100
ANSWER_SECONDS = 8.0
STOP_SECONDS = 5.0
_EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


class Console:
    """Where it is, and what it may do."""

    def __init__(self, wanted: ConsoleWanted) -> None:
        """Takes the address; ClickException says why it is not to be had."""
        if os.name != "posix":
            raise click.ClickException(
                f"{OPTION} hands sockets to a process, as Unix does: use `kafkalite console` here"
            )
        check_installed(OPTION)
        self._wanted = wanted
        self._words = [word for name in wanted.names for word in (ALLOW_HOST, name)]
        self._words += [] if wanted.registry is None else [REGISTRY, wanted.registry]
        self._words += [ALLOW_CHANGES] if wanted.may_change else []
        host, port = Address().convert(wanted.address, None, None)
        self._listener = listening(OPTION, host, port)
        self.url = url_of(self._listener.getsockname())
        self._link, self._theirs = socket.socketpair()
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, loop: AbstractEventLoop, broker: Broker, secured: Mapping[str, str]
    ) -> None:
        """Once the broker serves. secured: how clients come to one with keys of its own.
        Raises ClickException and OSError."""
        listener = _chosen(broker)
        given = {PROTOCOL: listener.protocol, **secured, **self._wanted.properties}
        _, mechanisms = ways_in(given)
        where = self._listener.getsockname()
        check_exposed(OPTION, (where[0], where[1]), self._wanted.may_change, bool(mechanisms))
        if self._wanted.port_file is not None:
            write_port(self._wanted.port_file, where[1], "--console-port-file")
        host, port = broker.server.addresses[listener.name]
        host = _EVERYWHERE.get(host, host)
        descriptors = self._listener.fileno(), self._theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kafkalite", "console", "--bootstrap",
             f"{f'[{host}]' if ':' in host else host}:{port}", "--command-config", "-",
             "--of-broker", f"{descriptors[0]},{descriptors[1]}", *self._words],
            stdin=subprocess.PIPE, pass_fds=descriptors, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as told:
            told.write(as_properties(given).encode())  # where nobody looks: passwords
        self._listener.close()
        self._theirs.close()
        answering = threading.Thread(
            target=self._answer, args=(loop, broker), name="kafkalite-console", daemon=True
        )
        answering.start()

    def stop(self) -> None:
        for each in (self._link, self._listener, self._theirs):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        if self._process is not None:
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _answer(self, loop: AbstractEventLoop, broker: Broker) -> None:
        """On a thread of its own: each question goes to the loop and comes back."""
        with suppress(OSError):
            while self._link.recv(1):
                told = json.dumps(_asked(loop, broker)).encode()
                self._link.sendall(told + b"\n")
        if self._process is not None:
            self._process.wait()  # so that nothing of it is left in the list of processes
        if not broker.is_serving:
            return
        logging.warning("the console at %s has ended, the broker goes on", self.url)


def _chosen(broker: Broker) -> Any:
    """The listener that asks least of a client: in the open if there is one, then with logins."""
    order = {PLAINTEXT: 0, **dict.fromkeys(SASL_PROTOCOLS, 1)}
    found = [each for each in broker.config.listeners if each.name in broker.server.addresses]
    return min(found, key=lambda each: order.get(each.protocol, 2))


def _asked(loop: AbstractEventLoop, broker: Broker) -> list[dict[str, Any]] | str:
    """The rows, or why there are none."""
    told: list[Any] = []
    is_told = threading.Event()

    def tell(outcome: Any) -> None:
        told.append(outcome)
        is_told.set()

    def begin() -> None:
        work = Work(caught(_rows(broker)), tell, lost=lambda: tell(RuntimeError("it stops")))
        broker.env.slices.begin(work)

    try:
        loop.call_soon_threadsafe(begin)
    except RuntimeError:
        return "the broker has stopped"
    if not is_told.wait(ANSWER_SECONDS):
        return f"the broker did not answer within {ANSWER_SECONDS:.0f} s"
    return str(told[0]) if isinstance(told[0], Exception) else told[0]


def _rows(broker: Broker) -> Steps[list[dict[str, Any]]]:
    """Connections by who they are: what clients say of themselves, so the most frequent alone."""
    counted: Counter[tuple[str, str, str, str, str]] = Counter()
    for number, each in enumerate(broker.server.clients, 1):
        told = (each.software_name, each.software_version, each.principal, each.peer_address[0],
                each.listener)  # fmt: skip
        name, version, principal, host, listener = (one[:MOST_CHARACTERS] for one in told)
        counted[name, version, principal, host, listener] += 1
        if number % LOOKS_PER_STEP == 0:
            yield
    return [
        {"software": name, "version": version, "principal": principal, "host": host,
         "listener": listener, "connections": count}
        for (name, version, principal, host, listener), count in counted.most_common(MOST_ROWS)
    ]  # fmt: skip
