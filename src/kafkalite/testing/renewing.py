"""Running brokers that go on with other data, behind the same ports and connections.

Owns the order: each broker is through with what it owes and lets go of its connections, the
controller last; the disk is exchanged; the brokers start again and take the connections over. What
clients see is what they see of a broker that was restarted, but that no connection breaks which
was owed nothing: sessions of fetches end, coordinators load, and topics have the ids of the data.
Leader epochs never go back, since clients believe no earlier one than they have heard of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkalite.coordinators.cluster.leading_anew import LeadAnew
from kafkalite.env.disk import Disk
from kafkalite.env.memory import DiskImage, MemoryDisk
from kafkalite.env.network import Address
from kafkalite.testing.outcome import Outcome
from kafkalite.testing.plan import CONTROLLER, BrokerFailed
from kafkalite.testing.running import Run
from kafkalite.testing.stage import Stage

Exchange = Callable[[Disk], Disk]
Members = dict[Address, list[tuple[str, str]]]  # of groups, by where their clients are


def snapshot(run: Run, found: list[DiskImage], outcome: Outcome) -> None:
    """All that is there, as after a stop in good order."""

    def exchange(disk: Disk) -> Disk:
        assert isinstance(disk, MemoryDisk)
        found.append(disk.image())
        return disk

    _check(run)
    run.do(Renewal(run, exchange, outcome, is_clean=True).begin)


def restore(run: Run, image: DiskImage | None, outcome: Outcome) -> None:
    """Goes on with an image, or with nothing, as if there had never been anything else."""

    def exchange(_: Disk) -> Disk:
        assert run.clock is not None
        now_ms = run.clock.now_ms
        return MemoryDisk(now_ms=now_ms) if image is None else MemoryDisk.of(image, now_ms)

    _check(run)
    run.do(Renewal(run, exchange, outcome, is_clean=False).begin)


def _check(run: Run) -> None:
    if not run.plan.is_in_memory:
        where = run.plan.data_dir or "log.dirs"
        raise BrokerFailed(
            f"its data is in {where}, and only what is in memory can be exchanged: stop it, and "
            "copy the directory"
        )
    if run.away:
        raise BrokerFailed(f"broker {run.away[0]} is stopped: start it first")


class Renewal:
    """Of all brokers of one run; done on its loop, as one action."""

    def __init__(self, run: Run, exchange: Exchange, outcome: Outcome, *, is_clean: bool) -> None:
        self._run = run
        self._exchange = exchange
        self._outcome = outcome
        self._is_clean = is_clean
        self._members: dict[int, Members] = {}  # by broker
        self._epochs: dict[tuple[str, int], int] = {}

    def begin(self, then: Callable[[], None]) -> None:
        run = self._run
        self._epochs = _epochs(run)
        self._members = {node_id: _members(stages) for node_id, stages in run.stages.items()}
        self._hand_over(then)

    def _hand_over(self, then: Callable[[], None]) -> None:
        run = self._run
        if not run.brokers:
            assert run.env is not None
            run.disk = run.env.disk = self._exchange(run.env.disk)
            run.start_again(partial(self._catch_up, then))
            return
        node_id = max(run.brokers)
        broker, network = run.brokers.pop(node_id), run.networks[node_id]
        network.is_renewed = True
        for stage in run.stages[node_id]:
            stage.end()
        over = broker.hand_over(network.keep, is_clean=self._is_clean)
        over.then(lambda _: run.soon(partial(self._hand_over, then)))

    def _catch_up(self, then: Callable[[], None]) -> None:
        """With the leader epochs that clients have heard of."""
        run = self._run
        now = _epochs(run)
        behind = [
            place for place, epoch in self._epochs.items() for _ in range(epoch - now.get(place, 0))
        ]
        if behind and run.ends_for is None:
            led = run.brokers[CONTROLLER].controller.submit(LeadAnew(behind))
            led.then(lambda _: self._take_over(then))
        else:
            self._take_over(then)

    def _take_over(self, then: Callable[[], None]) -> None:
        run = self._run
        for node_id, network in run.networks.items():
            network.is_renewed = False
            kept, network.kept = network.kept, []
            for listener, link in kept:
                if node_id in run.brokers:
                    members = self._members[node_id].get(link.peer_address, [])
                    info = run.brokers[node_id].server.take_over(listener, link)
                    run.stages[node_id][0].resume(members, info)
                else:
                    link.abort()
        self._outcome.told(run.ends_for)
        then()


def _members(stages: list[Stage]) -> Members:
    found: Members = {}
    for stage in stages:
        found |= stage.members_by_peer()
    return found


def _epochs(run: Run) -> dict[tuple[str, int], int]:
    """The epochs of the leaders of all partitions that have had several."""
    controller = run.brokers.get(CONTROLLER)
    topics = {} if controller is None else controller.metadata.image.topics
    return {
        (name, state.index): state.leader_epoch
        for name, topic in topics.items()
        for state in topic.partitions.values()
        if state.leader_epoch
    }
