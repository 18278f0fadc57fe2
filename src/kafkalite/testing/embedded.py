"""Brokers in this process, on a thread of their own, for tests and notebooks.

    with EmbeddedKafka(topics={"orders": 3}) as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)

Owns the thread and its event loop. Clients reach it over real sockets, as they reach any broker.
In memory unless it is given a directory; what is in memory outlives a `restart` and ends with the
object. With `brokers=3` there is a cluster: leaders are spread, the first broker is the controller.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.broker import Broker
    from kafkalite.env.disk import Disk
    from kafkalite.env.later import Later
    from kafkalite.protocol.errors import KafkaError

START_TIMEOUT_SECONDS = 30
STOP_TIMEOUT_SECONDS = 10
MEMORY = "/memory"


class BrokerFailed(RuntimeError):
    """The broker could not start or stop; the cause is chained."""


class EmbeddedKafka:
    """One broker or a few; `start` and `stop`, or a `with` block."""

    def __init__(
        self,
        data_dir: str | None = None,
        *,
        topics: Mapping[str, int] | None = None,
        settings: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        brokers: int = 1,
    ) -> None:
        self._data_dir = data_dir
        self._topics = dict(topics or {})
        self._settings = dict(settings or {})
        self._host = host
        self._ports = [port] + [0] * (brokers - 1)
        self._disk: Disk | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._brokers: list[Broker] = []
        self._bound: list[int] = []

    # --- life -------------------------------------------------------------------------------

    def __enter__(self) -> EmbeddedKafka:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> EmbeddedKafka:
        """Returns when the broker serves; again, on what is there, after `stop`."""
        assert self._thread is None, "the broker runs already"
        from kafkalite.env.loop import new_loop

        started = _Outcome()
        self._loop = new_loop()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="kafkalite", daemon=True
        )
        self._thread.start()
        started.wait(START_TIMEOUT_SECONDS, "start")
        self._bound = [
            next(iter(broker.server.addresses.values()))[1] for broker in self._brokers
        ]
        return self

    def stop(self) -> None:
        """Ends connections, and makes what is in a directory last."""
        if self._thread is None or self._loop is None:
            return
        if self._brokers:
            stopped = _Outcome()
            self._loop.call_soon_threadsafe(self._stop, stopped)
            stopped.wait(STOP_TIMEOUT_SECONDS, "stop")
        self._thread.join(STOP_TIMEOUT_SECONDS)
        self._thread = self._loop = None
        self._brokers = []

    def restart(self) -> EmbeddedKafka:
        """Stops and starts on the same data and the same ports."""
        self._ports = self.ports
        self.stop()
        return self.start()

    # --- what tests ask ---------------------------------------------------------------------

    @property
    def ports(self) -> list[int]:
        """The port of each broker."""
        assert self._brokers, "the broker does not run"
        return self._bound

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{self._host}:{port}" for port in self.ports)

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Creates a topic; it can be used, and lasts as configured, when this returns. BrokerFailed
        when it is refused, or when the broker has ended because its disk failed."""
        self._call(lambda broker: broker.create_topic(name, partitions, configs))

    def _call(self, action: Callable[[Broker], Later[KafkaError | None]]) -> None:
        """Has something done on the broker's own thread, and returns when it is."""
        assert self._loop is not None, "the broker does not run"
        outcome = _Outcome()
        controller = self._brokers[0]

        def act() -> None:
            if controller.failure is not None:
                outcome.fail(controller.failure)
                return
            controller.ended.then(outcome.fail)
            try:
                action(controller).then(outcome.told)
            except Exception as error:  # noqa: BLE001 it is raised again where it was asked for
                outcome.fail(error)

        self._loop.call_soon_threadsafe(act)
        outcome.wait(STOP_TIMEOUT_SECONDS, "act")

    # --- on the broker's thread ---------------------------------------------------------------

    def _run(self, started: _Outcome) -> None:
        loop = self._loop
        assert loop is not None
        asyncio.set_event_loop(loop)
        try:
            self._begin(loop, started)
        except Exception as error:  # noqa: BLE001 it is raised again where the start was asked for
            started.fail(error)
            return
        loop.run_forever()
        loop.close()

    def _begin(self, loop: asyncio.AbstractEventLoop, started: _Outcome) -> None:
        from kafkalite.broker.broker import Broker, Peers
        from kafkalite.config import broker_config
        from kafkalite.env import real_env
        from kafkalite.env.sockets import SocketNetwork

        env = real_env(loop, in_memory=self._data_dir is None)
        env.disk = self._disk = self._disk or env.disk
        peers = Peers()
        waiting = [
            lambda node_id=node_id: Broker(
                env, SocketNetwork(loop), broker_config(self._given(node_id))[0], peers
            )
            for node_id in range(1, len(self._ports) + 1)
        ]

        def start_next(failure: OSError | None) -> None:
            if failure is not None:
                started.fail(failure)
                self._end()
            elif waiting:
                broker = waiting.pop(0)()
                self._brokers.append(broker)
                broker.start().then(start_next)
            else:
                self._create_topics(started)

        start_next(None)

    def _given(self, node_id: int) -> dict[str, str]:
        directory = self._data_dir or MEMORY
        is_alone = len(self._ports) == 1
        return {
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{self._host}:{self._ports[node_id - 1]}",
            "log.dirs": directory if is_alone else f"{directory}/{node_id}",
            **self._settings,
        }

    def _create_topics(self, started: _Outcome) -> None:
        """Creates what is missing, and says that the start is done when all of it lasts."""
        controller = self._brokers[0]
        known = controller.cluster.image.topics
        missing = [each for each in self._topics.items() if each[0] not in known]

        def create_next(refusal: KafkaError | None) -> None:
            if refusal is not None:
                started.fail(refusal)
                self._end()
            elif not missing:
                started.done()
            else:
                controller.create_topic(*missing.pop(0)).then(create_next)

        create_next(None)

    def _stop(self, stopped: _Outcome) -> None:
        waiting = list(self._brokers)

        def stop_next(_: None) -> None:
            if waiting:
                waiting.pop().stop().then(stop_next)
            else:
                stopped.done()
                self._end()

        stop_next(None)

    def _end(self) -> None:
        assert self._loop is not None
        self._loop.call_soon(self._loop.stop)


class _Outcome:
    """A result that one thread waits for and another brings."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._error: Exception | None = None

    def done(self) -> None:
        self._event.set()

    def told(self, refusal: Exception | None) -> None:
        self.done() if refusal is None else self.fail(refusal)

    def fail(self, error: Exception) -> None:
        self._error = error
        self._event.set()

    def wait(self, seconds: float, what: str) -> None:
        if not self._event.wait(seconds):
            raise BrokerFailed(f"the broker did not {what} within {seconds} s")
        if self._error is not None:
            raise BrokerFailed(f"the broker could not {what}: {self._error}") from self._error
