"""Brokers on a thread of their own, from one start to one stop.

Owns the thread, its event loop and everything that the brokers have open. What is asked of it comes
from any thread, and is done on the loop, one after the other. Invariant: when `ended` is there,
nothing is left: no thread, no descriptor, no port.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kafkalite.testing.outcome import Outcome
from kafkalite.testing.outliving import alive
from kafkalite.testing.plan import (
    CONTROLLER,
    MEMORY,
    BrokerFailed,
    Controls,
    Plan,
    TopicPlan,
)

if TYPE_CHECKING:
    from kafkalite.broker.broker import Broker
    from kafkalite.broker.known import LocalBrokers
    from kafkalite.env import Env
    from kafkalite.env.background import ThreadBackground
    from kafkalite.env.disk import Disk
    from kafkalite.protocol.errors import KafkaError
    from kafkalite.testing.clock import SteeredClock
    from kafkalite.testing.stage import Stage
    from kafkalite.testing.standing import StandingNetwork

START_TIMEOUT_SECONDS = 30
STOP_TIMEOUT_SECONDS = 10
# For what a client is owed: an acknowledgement comes in less, a poll that waits may be cut off.
STOP_GRACE_MS = 100


class _Refused(Exception):
    """Why one of several brokers does not start."""


# An action is told what to call when it is through.
Action = Callable[[Callable[[], None]], None]


class Run:
    """One life of the brokers of a plan."""

    def __init__(self, plan: Plan, disk: Disk | None, controls: Controls) -> None:
        self.controls = controls
        self.plan = replace(plan, ports=list(plan.ports))  # of which those of 0 are found here
        self.disk = disk
        self.brokers: dict[int, Broker] = {}  # those that serve, by their ids
        self.ended = Outcome()
        self._started = Outcome()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._live, name="kafkalite", daemon=True)
        self._told: deque[Callable[[], None]] = deque([self._begin])
        self.loop: asyncio.AbstractEventLoop | None = None  # made, used and closed on the thread
        self.background: ThreadBackground | None = None
        self.env: Env | None = None
        self.clock: SteeredClock | None = None
        self.networks: dict[int, StandingNetwork] = {}
        self.stages: dict[int, list[Stage]] = {}  # of each broker: one for each kind of listener
        self._is_killed = False
        self._local_brokers: LocalBrokers | None = None
        self._actions: deque[Action] = deque()
        self._asked: set[Outcome] = set()
        self._starting: Broker | None = None
        self._failure: Exception | None = None
        self._has_begun = self.is_stopping = False

    # --- from any thread ------------------------------------------------------------------------

    @property
    def is_inherited(self) -> bool:
        """Whether it is that of a parent process, which a fork left here without its thread."""
        return os.getpid() != self._process

    @property
    def is_alive(self) -> bool:
        return not self.is_inherited and not self.ended.is_there

    @property
    def failure(self) -> Exception | None:
        """Why it ended, if not because somebody stopped it."""
        return self._failure if self.ended.is_there else None

    @property
    def ends_for(self) -> Exception | None:
        """The same, also while it is about to end."""
        return self._failure

    @property
    def serving(self) -> list[int]:
        """The ids of those that serve."""
        return sorted(id_ for id_, one in list(self.brokers.items()) if one.failure is None)

    @property
    def away(self) -> list[int]:
        """The ids of those that do not."""
        return sorted({*range(1, len(self.plan.ports) + 1)} - {*self.serving})

    def begin(self) -> None:
        """Returns when all brokers serve; raises BrokerFailed when all have ended instead."""
        try:
            self._has_begun = True
            alive.add(self)
            self._begin_thread()
            self._wait_for_start()
        except BaseException:  # such as Ctrl-C
            self.stop()
            raise

    def _begin_thread(self) -> None:
        if self.ended.is_there:
            self._tell_all(BrokerFailed("it was stopped meanwhile"))
            return
        try:
            self._thread.start()
        except RuntimeError as error:
            self._tell_all(BrokerFailed(f"no thread can be had: {error}"))

    def _wait_for_start(self) -> None:
        if not self._waited_for(self._started, START_TIMEOUT_SECONDS):
            raise BrokerFailed(f"the broker did not start within {START_TIMEOUT_SECONDS} s")
        error = self._started.error
        if error is not None:
            self.ended.wait(STOP_TIMEOUT_SECONDS)
            cause = error.__cause__ if isinstance(error, _Refused) else error
            whose = str(error)
            if not isinstance(error, _Refused):
                whose = f"the broker could not start: {error}"
            raise BrokerFailed(whose) from cause

    def _waited_for(self, outcome: Outcome, seconds: float) -> bool:
        """As long as it takes, while logs are being opened; else for a while."""
        come, has_moved = "", True
        while has_moved and not outcome.wait(seconds):
            starting = self._starting
            now = "" if starting is None else str(starting.logs.loading)
            come, has_moved = now, now != come
        return outcome.is_there

    def stop(self) -> None:
        """Ends it, and returns when nothing of it is left; from wherever and however often."""
        self.stop_soon()
        if not self._has_begun:  # who was about to was interrupted
            self.ended.done()
        if self.is_inherited or threading.current_thread() is self._thread:
            return  # it cannot wait for itself
        if not self.ended.wait(STOP_TIMEOUT_SECONDS):
            raise BrokerFailed(f"the broker did not stop within {STOP_TIMEOUT_SECONDS} s")
        with suppress(RuntimeError):  # it was never begun
            self._thread.join(STOP_TIMEOUT_SECONDS)

    def stop_soon(self) -> None:
        """The same without waiting."""
        if self.is_alive:
            self._tell(self._request_stop)

    def kill(self) -> None:
        """Ends it as a process does that is killed: what is written stays as it is."""
        self._is_killed = True
        self.stop()

    def tell(self, what: Callable[[], None]) -> None:
        """Has something called on the loop, or nowhere when that has ended."""
        self._tell(what)

    def _tell(self, what: Callable[[], None]) -> bool:
        """Has something called on the loop, as soon as there is one; False when it has ended."""
        self._told.append(what)
        loop = self.loop
        with suppress(RuntimeError):
            if loop is not None:
                loop.call_soon_threadsafe(self._hear)
            return True
        return False

    def ask(self, what: str, act: Callable[[Outcome], None]) -> None:
        """Has something done on the loop, and returns when it is; BrokerFailed when it is not."""
        self.check_thread(what)
        outcome = Outcome()

        def acting() -> None:
            try:
                act(outcome)
            except Exception as error:  # noqa: BLE001 it is raised again where it was asked for
                outcome.fail(error)

        self._asked.add(outcome)
        if not self._tell(acting) or not self.is_alive:
            outcome.fail(BrokerFailed("it was stopped meanwhile"))
        is_there = self._waited_for(outcome, STOP_TIMEOUT_SECONDS)
        self._asked.discard(outcome)
        if not is_there:
            raise BrokerFailed(f"the broker did not {what} within {STOP_TIMEOUT_SECONDS} s")
        if outcome.error is not None:
            raise BrokerFailed(f"the broker could not {what}: {outcome.error}") from outcome.error

    def check_thread(self, what: str) -> None:
        """That whoever waits is not who is waited for: an observer, a fault's `when`."""
        if threading.current_thread() is self._thread:
            raise BrokerFailed(
                f"the broker cannot {what} while an observer or a fault's `when`, which it calls, "
                "waits for that: ask for it on another thread"
            )

    def start_again(self, then: Callable[[], None]) -> None:
        """Starts all brokers of the plan on what is on the disk, and creates its topics."""
        from kafkalite.broker.known import LocalBrokers

        self._local_brokers = LocalBrokers()
        self._start_next(then)

    def now_ms(self) -> int:
        """What the brokers' clock says, as any thread may ask."""
        clock = self.clock
        return 0 if clock is None else clock.now_ms()

    # --- on its thread --------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            import kafkalite.broker.broker  # noqa: F401 - before anybody is served
            from kafkalite.env.loop import new_loop
            from kafkalite.env.turns import run

            loop = self.loop = new_loop()
        except Exception as error:  # noqa: BLE001 it is raised again where the start was asked for
            self._tell_all(error)
            return
        try:
            asyncio.set_event_loop(loop)
            loop.call_soon(self._hear)
            run(loop)
        finally:
            self._leave(loop)

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ends what the loop still has, and then tells everybody who waits."""
        if self.background is not None:
            self.background.close(STOP_TIMEOUT_SECONDS)
            loop.call_soon(loop.stop)  # the outcomes of the last jobs
            loop.run_forever()
        asyncio.set_event_loop(None)
        loop.close()
        self.brokers.clear()
        self.env = self._local_brokers = self._starting = None
        secured = self.plan.secured
        if secured is not None and secured.keys is not None:
            secured.keys.remove()
        self._tell_all(self._failure or BrokerFailed("it was stopped meanwhile"))

    def _tell_all(self, why: Exception) -> None:
        """Nothing is left, and nobody waits any longer."""
        alive.discard(self)
        self._started.fail(why)
        for outcome in list(self._asked):
            outcome.fail(why)
        self.ended.done()

    def _hear(self) -> None:
        while self._told:
            self._told.popleft()()

    def _begin(self) -> None:
        self.do(self._start_all)

    def do(self, action: Action) -> None:
        """Has an action done after those that were asked for before it."""
        self._actions.append(action)
        if len(self._actions) == 1:
            action(self._go_on)

    def _go_on(self) -> None:
        self._actions.popleft()
        if self._actions:
            self.soon(partial(self._actions[0], self._go_on))

    def _request_stop(self) -> None:
        if not self.is_stopping:
            self.is_stopping = True
            self.do(self._stop_all)

    # --- starting -------------------------------------------------------------------------------

    def _start_all(self, then: Callable[[], None]) -> None:
        try:
            self._prepare()
        except Exception as error:  # noqa: BLE001 it is raised again where the start was asked for
            self._give_up(error, then)
        else:
            self._start_next(then)

    def _prepare(self) -> None:
        from kafkalite.broker.known import LocalBrokers
        from kafkalite.env import Env
        from kafkalite.env.background import ThreadBackground
        from kafkalite.env.randomness import system_random
        from kafkalite.testing.clock import SteeredClock
        from kafkalite.testing.folder import check_folder

        assert self.loop is not None
        plan = self.plan
        self.background = ThreadBackground(self.loop)
        clock = self.clock = SteeredClock(self.loop, self.controls.shift)
        self.disk = self.disk or _new_disk(clock, is_in_memory=plan.is_in_memory)
        env = self.env = Env(clock, self.disk, self.background, system_random())
        self._local_brokers = LocalBrokers()
        if plan.secured is not None and plan.secured.keys is not None:
            plan.secured.keys.write()
        if not plan.names_directories:
            check_folder(env.disk, plan.data_dir or MEMORY, len(plan.ports))

    def _start_next(self, then: Callable[[], None]) -> None:
        node_id = len(self.brokers) + 1
        if self.is_stopping:
            then()  # to the stop, which tells who waits for the start
        elif node_id > len(self.plan.ports):
            self._create_topics(list(self.plan.topics.items()), then)
        else:
            self.start_broker(node_id, partial(self._has_started, then))

    def _has_started(self, then: Callable[[], None], failure: Exception | None) -> None:
        if failure is None:
            self._start_next(then)
        else:
            self._give_up(failure, then)

    def start_broker(self, node_id: int, told: Callable[[Exception | None], None]) -> None:
        """Tells that a broker serves, or why it does not."""

        def opened(failure: Exception | None) -> None:
            self._starting = None
            if failure is None:
                self.brokers[node_id] = broker
                broker.ended.then(partial(self._has_ended, node_id))
                address = next(iter(broker.server.addresses.values()))
                self.plan.ports[node_id - 1] = address[1]
            # In a turn of its own: what goes wrong here must not be taken for the broker's.
            outcome = None if failure is None else self._refusal(node_id, failure)
            self.soon(partial(told, outcome))

        try:
            broker = self._starting = self._new_broker(node_id)
            broker.start().then(opened)
        except Exception as error:  # noqa: BLE001 it is raised again where the start was asked for
            self._starting = None
            told(self._refusal(node_id, error))

    def _has_ended(self, node_id: int, failure: OSError | None) -> None:
        """Without the controller, or the last of them, there is nothing that could go on."""
        is_needed = node_id == CONTROLLER or len(self.away) == len(self.plan.ports)
        if failure is not None and is_needed and not self.is_stopping:
            self._failure = failure
            self.soon(self._request_stop)

    def _refusal(self, node_id: int, error: Exception) -> Exception:
        """The error, with the broker's number when there are several."""
        if len(self.plan.ports) == 1:
            return error
        refusal = _Refused(f"broker {node_id} of {len(self.plan.ports)} could not start: {error}")
        refusal.__cause__ = error
        return refusal

    def _new_broker(self, node_id: int) -> Broker:
        from kafkalite.broker.broker import Broker
        from kafkalite.config import broker_config
        from kafkalite.security.login_settings import check_broker_login
        from kafkalite.server.counting import Counts
        from kafkalite.testing.staging import staged
        from kafkalite.testing.standing import StandingNetwork

        assert self.env is not None
        assert self.loop is not None
        config, _ = broker_config(self.plan.config_of(node_id))
        if len(self.plan.ports) > 1:
            check_broker_login(config)
        self.stages[node_id] = []
        network = self.networks.setdefault(node_id, StandingNetwork(self.loop))
        over = partial(staged, self, node_id)
        counts = Counts(time.monotonic_ns) if self.plan.is_counted else None
        return Broker(self.env, network, config, self._local_brokers, over, counts)

    def _create_topics(self, wanted: list[tuple[str, TopicPlan]], then: Callable[[], None]) -> None:
        """Creates what is missing, and says that the start is done when all of it lasts."""
        controller = self.brokers[CONTROLLER]
        missing = [each for each in wanted if each[0] not in controller.metadata.image.topics]

        def create_next(refusal: KafkaError | None) -> None:
            if refusal is not None:
                self._give_up(refusal, then)
            elif missing and not self.is_stopping:
                name, (partitions, configs) = missing.pop(0)
                controller.create_topic(name, partitions, configs).then(create_next)
            else:
                if not missing:
                    self._started.done()
                then()

        if self.plan.acls:
            controller.create_acls(self.plan.acls).then(create_next)
        else:
            create_next(None)

    def _give_up(self, error: Exception, then: Callable[[], None]) -> None:
        """Ends what has begun; who waits is told why when it has ended."""
        self._failure = error
        self._request_stop()
        then()

    # --- stopping -------------------------------------------------------------------------------

    def _stop_all(self, then: Callable[[], None]) -> None:
        """The controller last: the others tell it that they go."""
        if self.brokers:
            node_id = max(self.brokers)
            self.stop_broker(node_id, self.brokers.pop(node_id), partial(self._stop_all, then))
        else:
            assert self.loop is not None
            for network in self.networks.values():
                network.close()
            self.loop.stop()
            then()

    def stop_broker(
        self, node_id: int, broker: Broker, then: Callable[[], None], *, is_killed: bool = False
    ) -> None:
        for stage in self.stages[node_id]:
            stage.end()
        try:
            is_killed = is_killed or self._is_killed
            stopped = broker.kill() if is_killed else broker.stop(STOP_GRACE_MS)
            stopped.then(lambda _: self.soon(then))
        except Exception:
            then()
            raise

    def soon(self, then: Callable[[], None]) -> None:
        assert self.loop is not None
        self.loop.call_soon(then)


def _new_disk(clock: SteeredClock, *, is_in_memory: bool) -> Disk:
    from kafkalite.env.disk import RealDisk
    from kafkalite.env.memory import MemoryDisk

    return MemoryDisk(now_ms=clock.now_ms) if is_in_memory else RealDisk()
