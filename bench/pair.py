"""The two brokers that are compared, side by side and in turns.

Owns how they are started for a measurement: with the same settings, Apache Kafka with the heap and
the JVM options of its own start scripts. `Run.turns` alternates between them, and begins every
other round with the other one, so that what changes on the machine meanwhile falls on both. With
`--compiled` kafkalite takes part twice, as it is and with the modules that `make compiled` built.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import psutil

from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, BROKERS, KAFKALITE, Broker

T = TypeVar("T")
OURS, THEIRS, COMPILED = "kafkalite", "kafka", "compiled"
NAMES = {KAFKALITE: OURS, APACHE_KAFKA: THEIRS}
SOURCES = Path(__file__).parents[1] / "src"
COMPILED_LIBRARY = Path(sys.prefix) / "side" / "compiled"


@dataclass(slots=True, frozen=True)
class Target:
    """A broker that is measured."""

    name: str
    broker: Broker
    pid: int

    @property
    def host(self) -> str:
        return self.broker.host

    @property
    def port(self) -> int:
        return self.broker.port

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def memory(self) -> int:
        """Resident bytes."""
        return int(psutil.Process(self.pid).memory_info().rss)


def start(kind: str, folder: Path, **settings: str) -> Target:
    """One broker as it is measured, its data in `folder`."""
    overrides = {name.replace("_", "."): value for name, value in settings.items()}
    broker = brokers.start(
        kind, folder, overrides, heap=brokers.NORMAL_HEAP, jvm=brokers.NORMAL_JVM
    )
    return Target(NAMES[kind], broker, broker.pid)


@contextmanager
def both(*, is_compiled: bool = False, **settings: str) -> Iterator[list[Target]]:
    """kafkalite and Apache Kafka, side by side; with kafkalite compiled as a third when asked."""
    started: list[Target] = []
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        try:
            started.extend(start(kind, Path(folder) / kind, **settings) for kind in BROKERS)
            if is_compiled:
                with library(COMPILED):
                    found = start(KAFKALITE, Path(folder) / COMPILED, **settings)
                started.append(replace(found, name=COMPILED))
            yield started
        finally:
            for target in started:
                target.broker.stop()


@contextmanager
def library(name: str) -> Iterator[None]:
    """Processes started meanwhile find the kafkalite of this name, whatever found this one."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(COMPILED_LIBRARY if name == COMPILED else SOURCES)
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def check_compiled() -> None:
    """Ends the program unless what was compiled are the sources of now."""
    for path in SOURCES.rglob("*.py"):
        twin = COMPILED_LIBRARY / path.relative_to(SOURCES)
        if not twin.exists() or twin.read_bytes() != path.read_bytes():
            raise SystemExit(f"{twin} is not there or not of these sources: run `make compiled`")


@dataclass(slots=True, frozen=True)
class Run:
    """How much is measured, and whom to tell how far it is."""

    is_quick: bool = False
    rounds: int = 5
    only: str = ""
    is_compiled: bool = False
    tell: Callable[[str], None] = print

    def wants(self, name: str) -> bool:
        return self.only in name

    def turns(
        self, targets: list[Target], measure: Callable[[Target], T], what: str
    ) -> dict[str, list[T]]:
        """A value per round, by the broker's name; a first round of each is not counted, because
        a JVM compiles what it runs while it runs."""
        found: dict[str, list[T]] = {target.name: [] for target in targets}
        self.tell(f"{what}: warming up")
        for target in targets:
            measure(target)
        for number in range(self.rounds):
            self.tell(f"{what}: round {number + 1} of {self.rounds}")
            for target in targets if number % 2 == 0 else targets[::-1]:
                found[target.name].append(measure(target))
        return found
