"""A simulated world: one broker in its lives, its clients, and all that may go wrong between them.

Owns the clock, the disk, chance and the faults; a seed determines everything, and nothing of the
machine is asked. What may be lost in a crash follows the durability: with `page-cache` the process
dies and its disk keeps what was written; with `fsync` the machine may die too, and unsynced writes
with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from kafkalite.broker import Broker
from kafkalite.config import BrokerConfig
from kafkalite.env import Env
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import forget_waits, open_waits
from kafkalite.sim.client import Client
from kafkalite.sim.disk import CrashDisk
from kafkalite.sim.history import History
from kafkalite.sim.life import SLOWEST_JOB_MS, Life
from kafkalite.sim.network import PORT, SimNetwork
from kafkalite.sim.trouble import OF_PROCESS, Trouble

DATA = "/data"
STUCK_MS = 60_000
JUMP_MS = 1_200_000

SETTINGS = {
    "node.id": "1",
    "listeners": f"PLAINTEXT://sim:{PORT}",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # So that the few seconds of a run see many segments, and what is compacted, compacted often.
    "log.roll.ms": "300",
    "log.cleaner.backoff.ms": "60",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.cleaner.delete.retention.ms": "600",
    "log.retention.check.interval.ms": "250",
}


class Stuck(AssertionError):
    """Something that must come to pass did not."""


@dataclass(slots=True)
class World:
    """Time, chance, a disk, and what runs on them."""

    seed: int
    durability: str = "page-cache"
    directories: str = DATA
    settings: Mapping[str, str] = field(default_factory=dict)  # besides
    clock: ManualClock = field(default_factory=ManualClock)
    disk: CrashDisk = field(default_factory=CrashDisk)
    history: History = field(default_factory=History)
    random: Random = field(init=False)
    network: SimNetwork = field(init=False)
    life: Life = field(init=False)
    broker: Broker = field(init=False)
    clients: list[Client] = field(default_factory=list)
    # What else may happen to those who use the broker, by kind.
    renewals: list[Callable[[], None]] = field(default_factory=list)  # of topics that come and go
    departures: list[Callable[[], None]] = field(default_factory=list)  # of a group's members
    waits: Counter[str] = field(default_factory=Counter)  # that a clean stop has left open
    trouble: Trouble | None = None
    has_had_trouble: bool = False
    has_met_trouble: bool = False  # in the broker's present life
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
        self.has_met_trouble = False
        self.network = SimNetwork(self.clock, self.random, life)
        config = BrokerConfig(
            {
                **SETTINGS,
                **self.settings,
                "log.dirs": self.directories,
                "kafkalite.durability": self.durability,
            }
        )
        env = Env(life, self.disk, life, Random(self.random.random()))
        if self.trouble is not None:
            self.disk.before_open = self.trouble.before_open
        try:
            self.broker = Broker(env, self.network, config)
            self.broker.ended.then(self._ended)
            started = self.broker.start()
        except OSError as error:
            self._started(life, error)
        else:
            started.then(partial(self._started, life))

    def _started(self, life: Life, error: OSError | None) -> None:
        if error is None:
            self.is_up = True
            if self.broker.partitions.offline:
                self.history.count("starts with offline partitions")
        if error is None or not life.is_alive:
            return
        assert self.has_met_trouble, error
        self.history.count("starts that failed")
        self._mend_later()

    def _mend_later(self) -> None:
        """The broker has ended for its disk, which somebody sees to."""
        self._end_life()
        self.disk = self.disk.stopped()
        self.trouble = None
        self.clock.call_later(self.random.randrange(1, 400), self.start_broker)

    def _ended(self, failure: OSError | None) -> None:
        """When a disk failed the broker stays away until somebody mends it. A trouble may be over
        before the broker has ended for it."""
        if failure is None or not self.life.is_alive:
            return
        self.history.count("failed disks")
        if self.is_up and failure.errno in OF_PROCESS:
            self.history.complain(f"a disk was taken out of service for {failure}")
        if self.has_met_trouble:
            self._mend_later()
        else:
            self._end_life()
            self.disk = self.disk.stopped()

    def create_topic(self, name: str, partitions: int, **settings: str) -> None:
        """Creates it and waits for the answer, as clients do: before it, a power cut may take the
        topic from everybody."""
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        created = self.broker.create_topic(name, partitions, configs)
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
                self.waits |= open_waits()
                self._end_life()
                self.disk = self.disk.stopped()
                self.history.count("stops")
                self.clock.call_later(self.random.randrange(1, 200), self.start_broker)

        self.is_up = False
        stopping.stop(grace_ms=10).then(stopped)

    def _end_life(self) -> None:
        self.is_up = False
        self.life.end()
        forget_waits()
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
        self.history.count("cut links")
        self.random.choice(self.clients).cut()

    def _jump(self) -> None:
        jump_ms = self.random.randrange(-JUMP_MS, JUMP_MS)
        self.history.count("jumps ahead" if jump_ms > 0 else "jumps back")
        self.clock.jump(jump_ms)

    def _renew_a_topic(self) -> None:
        if self.renewals:
            self.random.choice(self.renewals)()

    def _strike_a_member(self) -> None:
        if self.departures:
            self.random.choice(self.departures)()

    def _begin_trouble(self) -> None:
        """Files cannot be opened for a while; now and then the broker starts in the midst of it."""
        if self.trouble is not None:
            return
        self.history.count("troubles")
        trouble = self.trouble = Trouble.drawn(self.random, self._count_trouble)
        self.has_had_trouble = True
        self.disk.before_open = trouble.before_open
        if self.random.random() < 0.5:
            self._crash_if_up()
        self.clock.call_later(self.random.randrange(1, 600), lambda: self.end_trouble(trouble))

    def _count_trouble(self, what: str) -> None:
        self.has_met_trouble = True
        if what == "metadata":
            self.history.count("metadata files that could not be opened")
        else:
            self.history.count(f"{what} {'in service' if self.is_up else 'at a start'}")

    def end_trouble(self, trouble: Trouble | None) -> None:
        if trouble is not None and trouble is self.trouble:
            self.trouble = self.disk.before_open = None

    def _change_pace(self) -> None:
        self.history.count("link paces")
        self.network.slowest_ms = self.random.choice((2, 8, 60, 300))

    def _change_disk_pace(self) -> None:
        """A disk may take longer to sync than anybody waits for it."""
        self.history.count("disk paces")
        self.life.slowest_job_ms = self.random.choice((SLOWEST_JOB_MS, 300, 9_000))


_FAULTS: dict[Callable[[World], None], int] = {
    World._crash_if_up: 4,
    World._stop_if_up: 1,
    World._cut_a_link: 6,
    World._jump: 2,
    World._change_pace: 2,
    World._change_disk_pace: 2,
    World._renew_a_topic: 6,
    World._strike_a_member: 6,
    World._begin_trouble: 2,
}
