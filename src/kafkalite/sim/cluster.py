"""A simulated cluster: three brokers and their controller, each a machine that dies and comes back.

Owns the machines, what each has on its disk, and what goes wrong with them and between them. One
clock, one chance: a seed determines everything. As in `world`, what a death may take follows the
durability: with `page-cache` processes die, with `fsync` machines do, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kafkalite.broker.controller_server import ControllerServer
from kafkalite.broker.member import MemberBroker
from kafkalite.config import BrokerConfig
from kafkalite.env import Env
from kafkalite.env.clock import ManualClock
from kafkalite.log.checkpoints import write_properties
from kafkalite.replication.partition import Partition
from kafkalite.sim.disk import CrashDisk
from kafkalite.sim.history import History
from kafkalite.sim.life import SLOWEST_JOB_MS
from kafkalite.sim.machine_life import MachineLife
from kafkalite.sim.wires import DELAY_MS, HostNetwork, Way, Wires
from kafkalite.sim.world import STUCK_MS, Stuck

BROKERS = (1, 2, 3)
CONTROLLER = 3000
PORT = 9092
DATA = "/data"
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
SESSION_MS = 1_500
STEP_MS = 1_200_000
LONGEST_MS = 2 * SESSION_MS
CLIENTS = "10.0.1.1"

SETTINGS = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": str(SESSION_MS),
    "controller.quorum.append.linger.ms": "0",
    "default.replication.factor": "3",
    "leader.imbalance.check.interval.seconds": "2",
    "log.dirs": DATA,
    "log.roll.ms": "400",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "replica.lag.time.max.ms": "1500",
    "request.timeout.ms": "3000",
    "transaction.state.log.num.partitions": "1",
}


def host_of(node_id: int) -> str:
    return f"10.0.0.{node_id % 1000 or 100}"


@dataclass(slots=True)
class Machine:
    """One of them, in its lives."""

    cluster: Cluster
    node_id: int
    disk: CrashDisk = field(default_factory=CrashDisk)
    shift_ms: int = 0  # how far its wall clock is off
    lives: int = 0
    is_up: bool = False
    is_stopping: bool = False
    life: MachineLife = field(init=False)
    server: MemberBroker | ControllerServer = field(init=False)

    def __post_init__(self) -> None:
        self.disk.make_directory(DATA)
        self.disk.sync_directory("/")
        formatted = {"version": "1", "cluster.id": CLUSTER_ID, "node.id": str(self.node_id)}
        write_properties(self.disk, f"{DATA}/meta.properties", formatted)
        self.start()

    @property
    def is_alive(self) -> bool:
        return self.life.is_alive

    def start(self) -> None:
        cluster = self.cluster
        self.lives += 1
        self.is_stopping = False
        life = self.life = MachineLife(cluster.clock, cluster.random, lambda: self.shift_ms)
        env = Env(life, self.disk, life, Random(cluster.random.random()), _nobody)
        network = HostNetwork(cluster.wires, host_of(self.node_id), life)
        config = BrokerConfig(cluster.settings_of(self.node_id))
        make = ControllerServer if self.node_id == CONTROLLER else MemberBroker
        self.server = make(env, network, config)
        self.server.start().then(lambda failure: self._started(life, failure))

    def _started(self, life: MachineLife, failure: Exception | None) -> None:
        if not life.is_alive:
            return
        if failure is None:
            self.is_up = True
        else:  # such as: the controller is away
            self.cluster.history.count("starts in vain")
            self.die(is_power_cut=False)

    def die(self, *, is_power_cut: bool) -> None:
        """And come back a little later."""
        if not self.is_alive:
            return
        cluster = self.cluster
        if is_power_cut:
            cluster.history.count("power cuts")
        self.is_up = False
        self.life.end()
        cluster.wires.died(self.life)
        self.disk = self.disk.crashed(cluster.random) if is_power_cut else self.disk.stopped()
        cluster.clock.call_later(cluster.random.randrange(1, LONGEST_MS), self.start)

    def stop(self) -> None:
        """In good order."""
        if not self.is_up or self.is_stopping:
            return
        self.is_stopping, life = True, self.life
        self.server.stop(10).then(
            lambda _: self.die(is_power_cut=False) if life.is_alive else None
        )

    def replica(self, topic: str, index: int) -> Partition | None:
        """What it has of a partition, also what it had when it died."""
        server = self.server
        return server.partitions.get(topic, index) if isinstance(server, MemberBroker) else None


def _nobody(name: str) -> str:
    raise OSError(f"{name} is a name of nobody in this world")


@dataclass(slots=True)
class Cluster:
    """Time, chance, wires, and the machines on them."""

    seed: int
    durability: str
    clock: ManualClock = field(default_factory=ManualClock)
    history: History = field(default_factory=History)
    random: Random = field(init=False)
    wires: Wires = field(init=False)
    machines: dict[int, Machine] = field(init=False)
    changes: list[Callable[[], None]] = field(default_factory=list)  # that people make
    is_ending: bool = False

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.wires = Wires(self.clock, self.random)
        self.machines = {}
        for node_id in (CONTROLLER, *BROKERS):
            self.machines[node_id] = Machine(self, node_id)

    @property
    def brokers(self) -> list[Machine]:
        return [self.machines[each] for each in BROKERS]

    def settings_of(self, node_id: int) -> dict[str, str]:
        settings = SETTINGS | {"kafkalite.durability": self.durability, "node.id": str(node_id)}
        if node_id == CONTROLLER:
            own = {"process.roles": "controller", "listeners": f"CONTROLLER://{host_of(node_id)}"}
        else:
            own = {
                "process.roles": "broker", "listeners": f"PLAINTEXT://{host_of(node_id)}",
                "controller.quorum.voters": f"{CONTROLLER}@{host_of(CONTROLLER)}:{PORT}",
            }  # fmt: skip
        own["listeners"] += f":{PORT}"
        return settings | own

    # --- time -------------------------------------------------------------------------------------

    def run_until(self, is_so: Callable[[], bool], what: str) -> None:
        """Lets time pass until it is so; Stuck when it never is."""
        end_ms = self.clock.monotonic_ms() + STUCK_MS
        while not is_so():
            due_ms = self.clock.next_due_ms()
            if due_ms is None or self.clock.monotonic_ms() > end_ms:
                raise Stuck(what)
            self.clock.advance(due_ms)

    def later(self, most_ms: int, what: Callable[[], None]) -> None:
        self.clock.call_later(self.random.randrange(1, most_ms), what)

    # --- what goes wrong --------------------------------------------------------------------------

    def begin_faults(self, every_ms: int) -> None:
        """From now on, until the run is ending."""

        def strike() -> None:
            if not self.is_ending:
                fault = self.random.choices(list(_FAULTS), list(_FAULTS.values()))[0]
                self.history.count(fault.__name__.strip("_").replace("_", " "))
                fault(self)
                self.later(every_ms, strike)

        self.later(every_ms, strike)

    def some(self) -> Machine:
        return self.machines[self.random.choice((CONTROLLER, *BROKERS, *BROKERS))]

    def _kills(self) -> None:
        for machine in self.random.sample(self.brokers, self.random.choice((1, 1, 1, 2, 3))):
            self._kill(machine)

    def _kills_of_the_controller(self) -> None:
        self._kill(self.machines[CONTROLLER])

    def _kill(self, machine: Machine) -> None:
        machine.die(is_power_cut=self.durability == "fsync" and self.random.random() < 0.5)

    def _stops(self) -> None:
        self.some().stop()

    def _pauses(self) -> None:
        life = self.some().life
        life.stand_still()
        self.later(LONGEST_MS, life.go_on)

    def _cuts(self) -> None:
        """One machine from all others, or two apart, both ways or one; clients reach them."""
        hosts = [host_of(each) for each in self.machines]
        one, other = self.random.sample(hosts, 2)
        kind = self.random.randrange(4)
        ways: list[Way] = [(one, other)]
        if kind == 0:
            ways += [(one, each) for each in hosts if each != one]
        if kind < 3:
            ways += [(target, source) for source, target in ways]
        self.wires.cut(ways)
        self.later(LONGEST_MS, lambda: self.wires.mend(ways))

    def _clock_steps(self) -> None:
        self.some().shift_ms = self.random.randrange(-STEP_MS, STEP_MS)

    def _link_paces(self) -> None:
        self.wires.slowest_ms = self.random.choice((2, DELAY_MS, 60))

    def _disk_paces(self) -> None:
        self.some().life.slowest_job_ms = self.random.choice((SLOWEST_JOB_MS, 100, 1_000))

    def _changes(self) -> None:
        if self.changes:
            self.random.choice(self.changes)()

    def make_peace(self) -> None:
        """No more faults; who died comes back, and all is as it was in the beginning."""
        self.is_ending = True
        self.wires.slowest_ms = 4
        hosts = [host_of(each) for each in self.machines]
        self.wires.mend([(one, other) for one in hosts for other in hosts])
        for machine in self.machines.values():
            machine.life.slowest_job_ms = SLOWEST_JOB_MS
            machine.life.go_on()
        self.run_until(lambda: all(each.is_up for each in self.machines.values()), "all come back")


_FAULTS: dict[Callable[[Cluster], None], int] = {
    Cluster._kills: 5,
    Cluster._kills_of_the_controller: 1,
    Cluster._stops: 2,
    Cluster._pauses: 3,
    Cluster._cuts: 5,
    Cluster._clock_steps: 1,
    Cluster._link_paces: 1,
    Cluster._disk_paces: 1,
    Cluster._changes: 2,
}
