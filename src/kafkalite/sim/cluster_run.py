"""One run of a cluster from one seed: machines, clients, faults, peace, and a verdict.

Owns the plan of a run, and what is looked at in it: nothing acknowledged is lost or doubled, each
epoch has one leader, readers are given what stays, ends that were told do not go back, and in the
end all replicas are the same. The same seed gives the same run to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kafkalite.log.partition_log import PartitionLog
from kafkalite.replication.leader import Leader
from kafkalite.sim.checker import Anomalies, Final, check
from kafkalite.sim.cluster import BROKERS, CONTROLLER, Cluster, Machine
from kafkalite.sim.cluster_clients import Client, idempotent, plain, reader, reassign
from kafkalite.sim.contents import bytes_until, epochs_until
from kafkalite.sim.history import Partition, Reading
from kafkalite.sim.run import Verdict
from kafkalite.sim.world import Stuck

TOPIC, PARTITIONS = "t", 2
RUN_MS = 8_000
FAULT_EVERY_MS = 1_500
LOOK_EVERY_MS = 50
PUT_BACK_EVERY_MS = 500
PLACES: list[Partition] = [(TOPIC, index) for index in range(PARTITIONS)]


def simulate_cluster(seed: int) -> Verdict:
    """Runs it and judges it."""
    cluster = Cluster(seed, "fsync" if seed % 2 else "page-cache")
    anomalies, vigil = Anomalies(), Vigil(cluster)
    try:
        finals = _run(cluster, vigil)
    except Stuck as stuck:
        left = [*_unsettled(cluster), *_behind(cluster)]
        anomalies.add("stuck", f"{stuck}: {', '.join(left) or 'all in sync'}")
    else:
        check(cluster.history, finals, anomalies)
        for why in _differing(cluster):
            anomalies.add("different replicas", why)
    for why in vigil.found:
        anomalies.add("two leaders", why)
    counts = {**cluster.history.counts, "values": len(cluster.history.sent)}
    return Verdict(seed, anomalies, counts, cluster.clock.monotonic_ms())


@dataclass(slots=True)
class Vigil:
    """Looks again and again at who leads: an epoch has one leader, whoever knows of it."""

    cluster: Cluster
    found: list[str] = field(default_factory=list)
    _leaders: dict[tuple[Partition, int], int] = field(default_factory=dict)

    def begin(self) -> None:
        self.cluster.clock.call_later(LOOK_EVERY_MS, self._look)

    def _look(self) -> None:
        self.begin()
        for machine in self.cluster.brokers:
            for place in PLACES if machine.is_alive else ():
                replica = machine.replica(*place)
                if replica is not None and isinstance(replica.role, Leader):
                    self._leads(machine.node_id, place, replica.role.leader_epoch)

    def _leads(self, node_id: int, place: Partition, epoch: int) -> None:
        known = self._leaders.setdefault((place, epoch), node_id)
        if known != node_id:
            self.found.append(f"{place} in epoch {epoch}: brokers {known} and {node_id}")
            self._leaders[place, epoch] = node_id
        self.cluster.history.counts["epochs with a leader"] = len(self._leaders)


def _run(cluster: Cluster, vigil: Vigil) -> dict[Partition, Final]:
    machines = list(cluster.machines.values())
    cluster.run_until(lambda: all(each.is_up for each in machines), "all start")
    _create(cluster)
    cluster.run_until(lambda: not list(_unsettled(cluster)), "replicas are made")
    vigil.begin()
    writers = [Client(cluster) for _ in range(4)]
    for number, client in enumerate(writers):
        kind = plain if number % 2 else idempotent
        client.begin(kind(client, f"{kind.__name__}-{number}", PLACES))
    for place in PLACES:
        reading = cluster.history.reading(place, is_committed_only=False)
        client = Client(cluster)
        client.begin(reader(client, reading, lambda _: cluster.is_ending))
    admin = Client(cluster)
    cluster.changes.append(lambda: _reassign(admin))
    cluster.begin_faults(FAULT_EVERY_MS)
    cluster.clock.advance(RUN_MS)
    cluster.make_peace()
    _put_back(admin)
    cluster.run_until(lambda: not any(each.is_running for each in writers), "every writer ends")
    cluster.run_until(lambda: not list(_unsettled(cluster)), "replicas are in sync again")
    # A leader that was killed tells less for a moment than what is committed.
    cluster.run_until(lambda: not list(_behind(cluster)), "all know what is committed")
    return {place: _read(cluster, place) for place in PLACES}


def _reassign(admin: Client) -> None:
    """One partition, to two or three of them in any order."""
    chance = admin.cluster.random
    if not admin.is_running:
        replicas = chance.sample(BROKERS, chance.choice((2, 3)))
        admin.begin(reassign(admin, {chance.choice(PLACES): replicas}))


def _put_back(admin: Client) -> None:
    """Every partition is at all of them again."""
    cluster = admin.cluster

    def ask_again() -> None:
        image = cluster.machines[CONTROLLER].server.metadata.image
        states = {place: image.partition(*place) for place in PLACES}
        left = {
            place: list(BROKERS) for place, state in states.items()
            if state is not None and (len(state.replicas) < len(BROKERS) or state.removing_replicas)
        }  # fmt: skip
        if left and not admin.is_running:
            admin.begin(reassign(admin, left))
        cluster.clock.call_later(PUT_BACK_EVERY_MS, ask_again)

    ask_again()


def _create(cluster: Cluster) -> None:
    created = cluster.brokers[0].server.create_topic(TOPIC, PARTITIONS)
    cluster.run_until(lambda: created.is_resolved, "the topic is created")
    assert created.value is None, created.value


def _read(cluster: Cluster, place: Partition) -> Final:
    """All of it, once its leader tells where it ends."""
    reading, client, told = Reading(place, is_committed_only=False), Client(cluster), [0]

    def is_done(high_watermark: int) -> bool:
        told[0] = high_watermark
        return 0 < high_watermark <= reading.position

    client.begin(reader(client, reading, is_done))
    cluster.run_until(lambda: not client.is_running, f"{place} is read")
    return Final(reading, reading, told[0], told[0])


# --- what replicas have ---------------------------------------------------------------------------


def _unsettled(cluster: Cluster) -> Iterator[str]:
    """Partitions whose replicas are not all in sync, as every broker knows it."""
    for machine in cluster.brokers:
        for place in PLACES:
            state = machine.server.metadata.image.partition(*place)
            if state is None or machine.replica(*place) is None:
                yield f"{place} is not at {machine.node_id}"
            elif state.leader == -1 or sorted(state.isr) != list(BROKERS):
                yield f"{place} at {machine.node_id}: leader {state.leader}, in sync {state.isr}"


def _behind(cluster: Cluster) -> Iterator[str]:
    for machine in cluster.brokers:
        for place in PLACES:
            replica = machine.replica(*place)
            if replica is not None and replica.high_watermark != replica.log.log_end_offset:
                yield f"{place} at {machine.node_id} knows {replica.high_watermark} as committed"


def _differing(cluster: Cluster) -> Iterator[str]:
    """Bytes, and epochs in which something was written."""
    for place in PLACES:
        first, *others = [_contents(_log(each, place)) for each in cluster.brokers]
        for number, other in enumerate(others, 2):
            if other[0] != first[0]:
                yield f"{place}: the bytes of brokers 1 and {number}"
            if other[1] != first[1]:
                yield f"{place}: the epochs of brokers 1 and {number}: {first[1]} and {other[1]}"


def _log(machine: Machine, place: Partition) -> PartitionLog:
    replica = machine.replica(*place)
    assert replica is not None
    return replica.log


def _contents(log: PartitionLog) -> tuple[bytes, list[tuple[int, int]]]:
    return bytes_until(log, log.log_end_offset), epochs_until(log, log.log_end_offset)
