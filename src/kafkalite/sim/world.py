"""A simulated world: one broker in its lives, its clients, and all that may go wrong between them.

Owns the clock, the disk, chance and the faults; a seed determines everything, and nothing of the
machine is asked. What may be lost in a crash follows the durability: with `page-cache` the process
dies and its disk keeps what was written; with `fsync` the machine may die too, and unsynced writes
with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kafkalite.broker import Broker
from kafkalite.config import BrokerConfig
from kafkalite.env import Env
from kafkalite.env.clock import ManualClock
from kafkalite.sim.client import Client
from kafkalite.sim.disk import CrashDisk
from kafkalite.sim.history import History
from kafkalite.sim.life import Life
from kafkalite.sim.network import PORT, SimNetwork

DATA = "/data"
STUCK_MS = 60_000
JUMP_MS = 1_200_000

SETTINGS = {
    "node.id": "1",
    "listeners": f"PLAINTEXT://sim:{PORT}",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


class Stuck(AssertionError):
    """Something that must come to pass did not."""


@dataclass(slots=True)
class World:
    """Time, chance, a disk, and what runs on them."""

    seed: int
    durability: str = "page-cache"
    directories: str = DATA
    clock: ManualClock = field(default_factory=ManualClock)
    disk: CrashDisk = field(default_factory=CrashDisk)
    history: History = field(default_factory=History)
    random: Random = field(init=False)
    network: SimNetwork = field(init=False)
    life: Life = field(init=False)
    broker: Broker = field(init=False)
    clients: list[Client] = field(default_factory=list)
    is_ending: bool = False
    is_up: bool = False

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.start_broker()

    # --- time -----------------------------------------------------------------------------

    def run(self, duration_ms: int) -> None:
        self.clock.advance(duration_ms)

    def run_until(self, condition: Callable[[], bool], what: str) -> None:
        """Lets time pass until it is so; Stuck when it never is."""
        end_ms = self.clock.monotonic_ms() + STUCK_MS
        while not condition():
            due_ms = self.clock.next_due_ms()
            if due_ms is None or self.clock.monotonic_ms() > end_ms:
                raise Stuck(what)
            self.clock.advance(due_ms)

    # --- the broker -----------------------------------------------------------------------

    def start_broker(self) -> None:
        """Begins a new life on what the disk holds."""
        life = self.life = Life(self.clock, self.random)
        self.network = SimNetwork(self.clock, self.random, life)
        config = BrokerConfig(
            {
                **SETTINGS,
                "log.dirs": self.directories,
                "kafkalite.durability": self.durability,
            }
        )
        env = Env(life, self.disk, life, Random(self.random.random()))
        self.broker = Broker(env, self.network, config)
        self.broker.ended.then(self._ended)
        self.broker.start().then(self._started)

    def _started(self, error: OSError | None) -> None:
        assert error is None, error
        self.is_up = True

    def _ended(self, _: OSError) -> None:
        """A disk failed, and the broker stays away until somebody mends it."""
        self._end_life()
        self.disk = self.disk.stopped()
        self.history.count("failed disks")

    def create_topic(self, name: str, partitions: int) -> None:
        """Creates it and waits for the answer, as clients do: before it, a power cut may take the
        topic from everybody."""
        created = self.broker.create_topic(name, partitions)
        self.run_until(lambda: created.is_resolved, f"{name} is created")
        assert created.value is None, created.value

    def crash(self) -> None:
        """The process dies; with fsync it may be the machine."""
        self.die(is_power_cut=self.durability == "fsync" and self.random.random() < 0.5)

    def die(self, *, is_power_cut: bool) -> None:
        """The broker's life ends here, and another begins a little later."""
        self._end_life()
        self.disk = self.disk.crashed(self.random) if is_power_cut else self.disk.stopped()
        self.history.count("power cuts" if is_power_cut else "kills")
        self.clock.call_later(self.random.randrange(1, 400), self.start_broker)

    def stop_cleanly(self) -> None:
        stopping = self.broker

        def stopped(_: None) -> None:
            if stopping is self.broker and self.life.is_alive:
                self._end_life()
                self.disk = self.disk.stopped()
                self.history.count("stops")
                self.clock.call_later(self.random.randrange(1, 200), self.start_broker)

        self.is_up = False
        stopping.stop(grace_ms=10).then(stopped)

    def _end_life(self) -> None:
        self.is_up = False
        self.life.end()
        for client in self.clients:
            if self.random.random() < 0.8:  # the others wait for an answer in vain
                self.clock.call_later(self.random.randrange(1, 50), client.cut)

    # --- clients --------------------------------------------------------------------------

    def client(self, *, may_be_late: bool = True) -> Client:
        client = Client(self, may_be_late=may_be_late)
        self.clients.append(client)
        return client

    # --- faults ---------------------------------------------------------------------------

    def begin_faults(self, every_ms: int) -> None:
        """From now on something goes wrong now and then, until the run is ending."""

        def strike() -> None:
            if not self.is_ending:
                self.random.choices(list(_FAULTS), list(_FAULTS.values()))[0](self)
                self.clock.call_later(self.random.randrange(every_ms), strike)

        self.clock.call_later(self.random.randrange(every_ms), strike)

    def _crash_if_up(self) -> None:
        # Also while it starts: recovery is interrupted as easily.
        if self.life.is_alive:
            self.crash()

    def _stop_if_up(self) -> None:
        if self.is_up:
            self.stop_cleanly()

    def _cut_a_link(self) -> None:
        self.random.choice(self.clients).cut()

    def _jump(self) -> None:
        self.history.count("jumps")
        self.clock.jump(self.random.randrange(-JUMP_MS, JUMP_MS))

    def _change_pace(self) -> None:
        self.network.slowest_ms = self.random.choice((2, 8, 60, 300))


_FAULTS: dict[Callable[[World], None], int] = {
    World._crash_if_up: 4,
    World._stop_if_up: 1,
    World._cut_a_link: 6,
    World._jump: 2,
    World._change_pace: 2,
}
