"""What a test does to one of several brokers: stops it, kills it, starts it again, moves a leader.

Owns what `EmbeddedKafka` offers for that; what is done on the loop is several.py's.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from kafkalite.testing import acting, arguments, several
from kafkalite.testing.plan import BrokerFailed, Plan
from kafkalite.testing.running import Run


class Brokers(Protocol):
    """Those that it is one of."""

    _plan: Plan

    def _running(self) -> Run: ...


class OneOfSeveral(Brokers, Protocol):
    """Base of `EmbeddedKafka`."""

    def stop_broker(self, node_id: int) -> None:
        """Stops one of several brokers: the others go on, and lead from here on what they are in
        sync with; a partition without another replica has no leader until `start_broker`. Without
        the controller, broker 1, nothing about the cluster changes: who asks for that waits for
        it, for a minute at most."""
        run = self._one_of_several(node_id)
        run.ask(f"stop broker {node_id}", partial(several.stop_one, run, node_id))

    def kill_broker(self, node_id: int) -> None:
        """The same as `kill -9`: it hands nothing over, and writes nothing more. The others lead
        what it led as soon as the controller has noticed, which is when this returns; when it is
        the controller that is killed, nobody notices until it is back."""
        run = self._one_of_several(node_id)
        run.ask(f"kill broker {node_id}", partial(several.kill_one, run, node_id))

    def _one_of_several(self, node_id: int) -> Run:
        run = self._member(node_id)
        if run.serving == [node_id]:
            raise BrokerFailed(f"broker {node_id} is the only one that serves: stop() ends it")
        return run

    def start_broker(self, node_id: int) -> None:
        """Starts a broker that was stopped or killed, or that ended because its disk failed, with
        its data and on its port."""
        run = self._member(node_id)
        run.ask(f"start broker {node_id}", partial(several.start_one, run, node_id))

    def move_leader(self, topic: str, partition: int = 0, *, to: int) -> None:
        """Has another replica of a partition lead it, which is in sync; clients learn of it when
        they ask the one that led. Who leads already begins a new epoch."""
        arguments.topic("topic", topic)
        run = self._member(to)
        what = f"have broker {to} lead {topic}-{partition}"
        run.ask(what, partial(acting.move_leader, run, topic, partition, to))

    @property
    def stopped_brokers(self) -> list[int]:
        """The ids of those that do not serve while the others do."""
        return self._running().away

    def _member(self, node_id: int) -> Run:
        count = len(self._plan.ports)
        if node_id not in range(1, count + 1):
            raise ValueError(f"there is no broker {node_id!r}: their ids are 1 to {count}")
        return self._running()
