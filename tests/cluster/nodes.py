"""Three brokers and a controller, each a process, and what can be done to them.

Owns their settings and processes. Ours and Apache Kafka's are given the same files.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kafkalite.cli._members import CONTROLLER_ID, Member, Members, members_of, prepare
from kafkalite.config import parse_properties
from kafkalite.jvm import jars, java
from tests import mounts
from tests.cluster.links import CONTROLLER, Links, linked
from tests.compat import brokers

BROKERS = (1, 2, 3)
ALL, BESIDE_OURS = (CONTROLLER, *BROKERS), (2, 3)  # of whom Apache Kafka's may be
HEAP = "384M"
START_S = 90
STOP_S = 60
DISK = "64m"  # of a broker, where it is one of its own
SESSION_MS = 3_000
SETTINGS = {
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": str(SESSION_MS),
    "controller.quorum.append.linger.ms": "0",
    "default.replication.factor": "3",
    "group.initial.rebalance.delay.ms": "0",
    "inter.broker.listener.name": "BETWEEN",
    "leader.imbalance.check.interval.seconds": "5",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,BETWEEN:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
    "log.segment.bytes": str(1 << 20),
    "min.insync.replicas": "2",
    "num.partitions": "6",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "3",
    "replica.lag.time.max.ms": "4000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "3",
}


@dataclass(slots=True, eq=False)
class Node:
    """One process, started again and again with the same files."""

    member: Member
    folder: Path  # its log and its pid
    command: list[str]
    is_up: bool = False
    is_paused: bool = False

    @property
    def name(self) -> str:
        return self.member.name

    @property
    def data(self) -> Path:
        return Path(self.member.directory)

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Without waiting until it serves."""
        if not self.is_up:
            self.folder.mkdir(parents=True, exist_ok=True)
            brokers.spawn(self.command, self.folder)
            self.is_up = True

    @property
    def pid(self) -> int:
        return int((self.folder / "pid").read_text())

    def kill(self) -> None:
        brokers.end(self.folder, signal.SIGKILL)
        self.is_up = self.is_paused = False

    def ask_to_stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def stop(self) -> bool:
        """In good order; False when it had to be killed."""
        self.resume()
        if not self.is_up:
            return True
        pid = self.pid
        if not self.has_ended():
            self.ask_to_stop()
        is_gone = brokers.gone(pid, STOP_S)
        self.kill()
        return is_gone

    def pause(self) -> None:
        if self.is_up:
            os.kill(self.pid, signal.SIGSTOP)
            self.is_paused = True

    def resume(self) -> None:
        if self.is_paused:
            os.kill(self.pid, signal.SIGCONT)
            self.is_paused = False

    def fill(self) -> None:
        mounts.Filler(self.data).fill()

    def make_room(self) -> None:
        mounts.Filler(self.data).free()

    def has_ended(self) -> bool:
        """By itself, which nobody has asked for."""
        return self.is_up and brokers.gone(self.pid, 0.01)

    def wipe(self) -> None:
        """As a disk that was exchanged and formatted."""
        known = parse_properties((self.data / "meta.properties").read_text())
        for each in self.data.iterdir():
            if each.is_dir():
                shutil.rmtree(each)
            elif each.name != "server.properties":
                each.unlink()
        formatted = {"version": "1", "cluster.id": known["cluster.id"], "node.id": known["node.id"]}
        lines = (f"{name}={value}\n" for name, value in formatted.items())
        (self.data / "meta.properties").write_text("".join(lines))


@dataclass(slots=True)
class Cluster:
    controller: Node
    brokers: dict[int, Node]
    servers: str
    links: Links

    @property
    def everybody(self) -> list[Node]:
        return [self.controller, *self.brokers.values()]

    def start(self) -> None:
        self.links.mend()
        for each in self.everybody:
            each.resume()
            each.start()

    def ended(self) -> list[str]:
        return [each.name for each in self.everybody if each.has_ended()]


@contextmanager
def running(
    home: Path, *, kafka: Collection[int] = (), settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A cluster of its own, which is killed in the end. Some are Apache Kafka's, or all."""
    given = {**SETTINGS, **(settings or {})}
    port = brokers.ports_in_a_row(2 * len(BROKERS) + 1, range(25_000, 28_000))
    members = members_of(len(BROKERS), "127.0.0.1", port, str(home / "data"), given)
    with _apart(members, port) as links:
        cluster = _made(members, links, home, kafka)
        try:
            cluster.start()
            yield cluster
        finally:
            for each in cluster.everybody:
                each.kill()
            for each in cluster.brokers.values():
                if mounts.are_there():
                    mounts.unmount(each.data)


@contextmanager
def _apart(members: Members, port: int) -> Iterator[Links]:
    """Brokers reach each other, and their controller, over links that can be cut."""
    between = {each: port + len(BROKERS) + each for each in BROKERS}
    routes = {(0, each): between[each] for each in BROKERS}
    routes |= {(each, CONTROLLER): port + len(BROKERS) for each in BROKERS}
    with linked(routes) as (links, shown):
        for each in members.brokers:
            own, node_id = each.settings["listeners"], each.node_id
            at_controller = f"{CONTROLLER_ID}@127.0.0.1:{shown[node_id, CONTROLLER]}"
            each.settings.update({
                "listeners": f"{own},BETWEEN://127.0.0.1:{between[node_id]}",
                "advertised.listeners": f"{own},BETWEEN://127.0.0.1:{shown[0, node_id]}",
                "controller.quorum.voters": at_controller,
            })  # fmt: skip
        members.controller.settings.pop("inter.broker.listener.name")
        yield links


def _made(members: Members, links: Links, home: Path, kafka: Collection[int]) -> Cluster:
    """Nothing of it runs."""
    if mounts.are_there():
        for each in members.brokers:
            Path(each.directory).mkdir(parents=True)
            mounts.mount(Path(each.directory), DISK)
    prepare(members)
    everybody = (members.controller, *members.brokers)
    nodes = [
        Node(each, home / each.name.replace(" ", "-"), [sys.executable, "-m", "kafkalite", "serve",
             "-c", each.properties])
        for each in everybody
    ]  # fmt: skip
    for node_id in kafka:
        node = nodes[node_id]
        node.command = _kafka(node, "kafka.Kafka", node.member.properties)
    if CONTROLLER in kafka:
        _format(nodes[0])
    by_id = dict(zip(BROKERS, nodes[1:], strict=True))
    return Cluster(nodes[0], by_id, ",".join(members.addresses), links)


def _kafka(node: Node, main_class: str, *arguments: str) -> list[str]:
    node.folder.mkdir(parents=True, exist_ok=True)
    logging = node.folder / "log4j2.properties"
    logging.write_text(brokers.LOG4J_2)
    class_path = jars.class_path(brokers.JAR_GROUPS[brokers.APACHE_KAFKA])
    call = java.command(class_path, main_class, *arguments, heap=HEAP)
    return [call[0], *brokers.TEST_JVM, f"-Dlog4j2.configurationFile={logging}", *call[1:]]


def _format(controller: Node) -> None:
    """Which writes the first records of the metadata, too."""
    meta = controller.data / "meta.properties"
    cluster_id = parse_properties(meta.read_text())["cluster.id"]
    meta.unlink()
    properties = controller.member.properties
    brokers.format_directory(
        _kafka(controller, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", properties)
    )


def until(is_so: Callable[[], bool], seconds: float, what: Callable[[], str]) -> float:
    """How long it took; AssertionError with what is so instead."""
    began = time.monotonic()
    while True:
        with suppress(Exception):  # brokers that are not there yet
            if is_so():
                return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise AssertionError(what())
        time.sleep(0.1)
