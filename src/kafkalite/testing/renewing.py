"""Running brokers that go on with other data, behind the same ports and connections.

Owns the order: each broker is through with what it owes and lets go of its connections, the
controller last; the disk is exchanged; the brokers start again and take the connections over. What
clients see is what they see of a broker that was restarted, but that no connection breaks which
was owed nothing: sessions of fetches end, coordinators load, and topics have the ids of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkalite.env.disk import Disk
from kafkalite.env.memory import DiskImage, MemoryDisk
from kafkalite.testing.outcome import Outcome
from kafkalite.testing.plan import BrokerFailed
from kafkalite.testing.running import Run

Exchange = Callable[[Disk], Disk]


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

    def begin(self, then: Callable[[], None]) -> None:
        self._hand_over(then)

    def _hand_over(self, then: Callable[[], None]) -> None:
        run = self._run
        if not run.brokers:
            assert run.env is not None
            run.disk = run.env.disk = self._exchange(run.env.disk)
            run.start_again(partial(self._take_over, then))
            return
        node_id = max(run.brokers)
        broker, network = run.brokers.pop(node_id), run.networks[node_id]
        network.is_renewed = True
        over = broker.hand_over(network.keep, is_clean=self._is_clean)
        over.then(lambda _: run.soon(partial(self._hand_over, then)))

    def _take_over(self, then: Callable[[], None]) -> None:
        run = self._run
        for node_id, network in run.networks.items():
            network.is_renewed = False
            kept, network.kept = network.kept, []
            for listener, link in kept:
                if node_id in run.brokers:
                    run.brokers[node_id].server.take_over(listener, link)
                else:
                    link.abort()
        self._outcome.done()  # unless it has failed, which was told before
        then()
