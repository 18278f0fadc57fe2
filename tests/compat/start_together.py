"""Consumers of a new group that start in the same moment: are they one generation, and how soon?

`python -m tests.compat.start_together 20` plays twenty rounds of one, two, three and ten consumers
with each client (those whose names begin with a second argument), after some that do not count,
against a kafkalite of its own with default settings, and fails when a round had more than one
generation or took longer than `LIMIT_S`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.compat.together_clients import CLIENTS, PATIENCE_S, TOPIC

PARTITIONS = 20
LIMIT_S = 0.3
CROWDS = (1, 2, 3, 10)
WARM_UPS = 3  # rounds that do not count: a client loads and compiles its code in the first ones


@dataclass
class Round:
    """What the consumers of one group were told, and when."""

    count: int
    started_s: float = 0.0
    assigned: list[tuple[float, int, int]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def note(self, member: int, partitions: int) -> None:
        self.assigned.append((time.monotonic(), member, partitions))
        latest = {who: number for _, who, number in self.assigned}
        if len(latest) == self.count and sum(latest.values()) == PARTITIONS:
            self.over.set()

    @property
    def is_one_generation(self) -> bool:
        return self.over.is_set() and len(self.assigned) == self.count

    @property
    def took_s(self) -> float:
        return max(at for at, _, _ in self.assigned) - self.started_s


def play(bootstrap: str, client: str, count: int) -> Round:
    """One round with a new group; the consumers are connected when it begins."""
    make, protocol = CLIENTS[client]
    group = f"together-{uuid.uuid4()}"
    played = Round(count)
    ready = threading.Barrier(count + 1)
    is_over = threading.Event()

    def run(member: int) -> None:
        poll, close = make(bootstrap, group, lambda number: played.note(member, number), protocol)
        ready.wait(PATIENCE_S)
        while not is_over.is_set():
            poll()
        close()

    threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in range(count)]
    for thread in threads:
        thread.start()
    played.started_s = time.monotonic()
    ready.wait(PATIENCE_S)
    played.started_s = time.monotonic()
    played.over.wait(PATIENCE_S)
    time.sleep(0.2)  # somebody might be told something else
    is_over.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    return played


@contextmanager
def kafkalite() -> Iterator[str]:
    """A broker with default settings in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        options = ["--memory", "--listen", "127.0.0.1:0", "--port-file", str(port_file)]
        options += ["--topic", f"{TOPIC}:{PARTITIONS}"]
        serve = [sys.executable, "-m", "kafkalite", "serve", *options]
        broker = subprocess.Popen(serve, stderr=subprocess.DEVNULL)
        try:
            while not port_file.exists():
                time.sleep(0.05)
            yield f"127.0.0.1:{port_file.read_text().strip()}"
        finally:
            broker.terminate()
            broker.wait(PATIENCE_S)


def main(rounds: int, which: str = "") -> int:
    failures = 0
    with kafkalite() as bootstrap:
        for client in (each for each in CLIENTS if each.startswith(which)):
            for _ in range(WARM_UPS):
                play(bootstrap, client, max(CROWDS))
            for count in CROWDS:
                played = [play(bootstrap, client, count) for _ in range(rounds)]
                together = sum(one.is_one_generation for one in played)
                in_time = sum(one.over.is_set() and one.took_s <= LIMIT_S for one in played)
                slowest_s = max(one.took_s for one in played if one.assigned)
                failures += 2 * rounds - together - in_time
                print(
                    f"{client:25} {count:2} consumers: one generation in {together} of {rounds},"
                    f" within {LIMIT_S} s in {in_time}, slowest {slowest_s:.3f} s",
                    flush=True,
                )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, *sys.argv[2:]))
