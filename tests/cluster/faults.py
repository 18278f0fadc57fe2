"""What goes wrong in a round: each fault is done and undone, at moments that a seed chooses.

A fault says in words what it did. None of them takes what was acknowledged: a directory is lost
only while the two others have everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from tests import mounts
from tests.cluster.links import CONTROLLER, Link
from tests.cluster.load import PARTITIONS, QUIET
from tests.cluster.nodes import BROKERS, SESSION_MS, STOP_S, Cluster, Node, until

SESSION_S = SESSION_MS / 1_000
ADMIN_MS = 5_000
MOST_FAULTS = 4


@dataclass(slots=True)
class Scene:
    """What a fault may reach."""

    cluster: Cluster
    chance: Random
    topic: str
    settle: Callable[[], object]  # waits until all replicas are in sync

    def wait(self, low: float, high: float) -> float:
        seconds = self.chance.uniform(low, high)
        time.sleep(seconds)
        return seconds

    def one(self) -> Node:
        return self.cluster.brokers[self.chance.choice(BROKERS)]

    def two(self) -> list[Node]:
        return [self.cluster.brokers[each] for each in self.chance.sample(BROKERS, 2)]

    def some_order(self, nodes: list[Node]) -> list[Node]:
        return self.chance.sample(nodes, len(nodes))


def kill_one(scene: Scene) -> str:
    return _kill(scene, [scene.one()])


def kill_two(scene: Scene) -> str:
    return _kill(scene, scene.two())


def kill_controller(scene: Scene) -> str:
    return _kill(scene, [scene.cluster.controller])


def kill_one_and_the_controller(scene: Scene) -> str:
    return _kill(scene, [scene.one(), scene.cluster.controller])


def kill_all(scene: Scene) -> str:
    return _kill(scene, scene.cluster.everybody)


def _kill(scene: Scene, nodes: list[Node]) -> str:
    """And starts them again, in some order, not all at once."""
    for each in nodes:
        each.kill()
    away = scene.wait(0.2, 1.5 * SESSION_S)
    for each in scene.some_order(nodes):
        each.start()
        away += scene.wait(0, 1)
    return f"killed {_names(nodes)} for {away:.1f} s"


def kill_twice(scene: Scene) -> str:
    """The second time while it recovers."""
    node = scene.one()
    told = _kill(scene, [node])
    again = scene.wait(0, 2)
    return f"{told}, again {again:.1f} s later: {_kill(scene, [node])}"


def pause_briefly(scene: Scene) -> str:
    return _pause(scene, [scene.one()], 0.3, 0.6 * SESSION_S)


def pause_past_the_session(scene: Scene) -> str:
    return _pause(scene, [scene.one()], 1.2 * SESSION_S, 2.5 * SESSION_S)


def pause_controller(scene: Scene) -> str:
    return _pause(scene, [scene.cluster.controller], 0.3, 2 * SESSION_S)


def pause_two(scene: Scene) -> str:
    return _pause(scene, scene.two(), 0.3, 2 * SESSION_S)


def _pause(scene: Scene, nodes: list[Node], low: float, high: float) -> str:
    for each in nodes:
        each.pause()
    seconds = scene.wait(low, high)
    for each in scene.some_order(nodes):
        each.resume()
    return f"paused {_names(nodes)} for {seconds:.1f} s"


def stop_one(scene: Scene) -> str:
    node = scene.one()
    began = time.monotonic()
    if not node.stop():
        raise AssertionError(f"{node.name} does not stop within {STOP_S} s")
    took = time.monotonic() - began
    scene.wait(0, SESSION_S)
    node.start()
    return f"stopped {node.name} in {took:.1f} s"


def stop_controller(scene: Scene) -> str:
    node = scene.cluster.controller
    if not node.stop():
        raise AssertionError(f"{node.name} does not stop within {STOP_S} s")
    seconds = scene.wait(0, 2 * SESSION_S)
    node.start()
    return f"stopped the controller for {seconds:.1f} s"


def lose_directory(scene: Scene) -> str:
    """Its replicas are made again from those of the others."""
    scene.settle()
    node = scene.one()
    node.kill()
    node.wipe()
    scene.wait(0, SESSION_S)
    node.start()
    until(
        lambda: (node.data / f"{scene.topic}-0").exists(), STOP_S,
        lambda: f"{node.name} has no replicas on its new disk",
    )  # fmt: skip
    return f"lost the directory of {node.name}, all in sync after {scene.settle()} s"


# --- links and disks ------------------------------------------------------------------------------


def cut_one_off(scene: Scene) -> str:
    """From the others and from the controller; clients reach it."""
    one = scene.chance.choice(BROKERS)
    others = [CONTROLLER, *(each for each in BROKERS if each != one)]
    return _cut(scene, [(one, each) for each in others], both_ways=True)


def cut_from_the_controller(scene: Scene) -> str:
    return _cut(scene, [(scene.chance.choice(BROKERS), CONTROLLER)], both_ways=True)


def cut_two_apart(scene: Scene) -> str:
    first, second = scene.chance.sample(BROKERS, 2)
    return _cut(scene, [(first, second)], both_ways=True)


def cut_one_way(scene: Scene) -> str:
    """What one of them says does not come to the other, which may be the controller."""
    first, second = scene.chance.sample((CONTROLLER, *BROKERS), 2)
    return _cut(scene, [(first, second)], both_ways=False)


def _cut(scene: Scene, links: list[Link], *, both_ways: bool) -> str:
    back = [(target, source) for source, target in links] if both_ways else []
    scene.cluster.links.cut(*links, *back)
    seconds = scene.wait(0.3, 2.5 * SESSION_S)
    scene.cluster.links.mend()
    named = ", ".join(f"{source or 'controller'}-{target or 'controller'}"
                      for source, target in links)  # fmt: skip
    return f"cut {named}{'' if both_ways else ' one way'} for {seconds:.1f} s"


def fill_a_disk(scene: Scene) -> str:
    """Until there is room again; Apache Kafka's broker ends for it, and is started again."""
    node = scene.one()
    if not mounts.are_there():
        return "no disk to fill: no mounts of one's own here"
    node.fill()
    seconds = scene.wait(0.3, 2.5 * SESSION_S)
    node.make_room()
    told = f"filled the disk of {node.name} for {seconds:.1f} s"
    if node.has_ended():
        node.kill()
        node.start()
        told += ", for which it ended"
    return told


# --- what people do -------------------------------------------------------------------------------


def admin_of(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers, **QUIET})


def elect(scene: Scene) -> str:
    """Who comes first leads again."""
    admin = admin_of(scene.cluster.servers)
    with suppress(Exception):  # whoever leads already is an error, too
        admin.elect_leaders(
            ElectionType.PREFERRED, None, request_timeout=ADMIN_MS / 1_000
        ).result()
    return "elected preferred leaders"


def reassign(scene: Scene) -> str:
    """In another order, or to two of them: the third is taken in again at the end of the round."""
    wanted = {
        TopicPartition(scene.topic, index): scene.chance.sample(
            BROKERS, scene.chance.choice((2, 3))
        )
        for index in range(PARTITIONS)
    }
    return f"reassigned {assign(scene.cluster.servers, wanted)} partitions"


def assign(servers: str, wanted: dict[TopicPartition, list[int]]) -> int:
    """How many were taken; nobody may be there."""
    with suppress(Exception):
        admin = KafkaAdminClient(bootstrap_servers=servers.split(","), request_timeout_ms=ADMIN_MS)
        try:
            answers = admin.alter_partition_reassignments(wanted, timeout_ms=ADMIN_MS)
            return sum(each is None for each in answers.values())
        finally:
            admin.close()
    return 0


FAULTS: tuple[Callable[[Scene], str], ...] = (
    kill_one, kill_one, kill_two, kill_twice, kill_controller, kill_one_and_the_controller,
    kill_all, pause_briefly, pause_past_the_session, pause_past_the_session, pause_controller,
    pause_two, stop_one, stop_one, stop_controller, lose_directory, elect, reassign, reassign,
    cut_one_off, cut_one_off, cut_from_the_controller, cut_two_apart, cut_one_way, fill_a_disk,
    fill_a_disk,
)  # fmt: skip


def chosen(chance: Random, only: str = "") -> list[Callable[[Scene], str]]:
    """Of those with this in their names."""
    faults = [each for each in FAULTS if only in each.__name__]
    return [chance.choice(faults) for _ in range(chance.randint(2, MOST_FAULTS))]


def _names(nodes: list[Node]) -> str:
    return " and ".join(each.name for each in nodes)
