"""Brokers in this process, on a thread of their own, for tests and notebooks.

    with EmbeddedKafka(topics={"orders": 3}) as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)

Clients reach it over real sockets, as they reach any broker. In memory unless it is given a
directory; what is in memory outlives a `stop` and the next `start`, and ends with the object. With
`brokers=3` there is a cluster: leaders are spread, the first broker is the controller.

All may be called from any thread, from the handler of a signal and in any order; what fails raises
BrokerFailed and leaves an object that can be started again.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsFloat

from kafkalite.security.acl import Acl
from kafkalite.testing import acting, arguments
from kafkalite.testing.arguments import Settings, Topics
from kafkalite.testing.asking import Asking
from kafkalite.testing.chosen import Explored
from kafkalite.testing.clock import Shift
from kafkalite.testing.faults import Act, Fault, Faults, When, api_name, check_times, error_named
from kafkalite.testing.numbers import Numbers
from kafkalite.testing.observing import Observer, Observers
from kafkalite.testing.one_of_several import OneOfSeveral
from kafkalite.testing.plan import CONTROLLER, BrokerFailed, Controls, Plan
from kafkalite.testing.running import Run
from kafkalite.testing.secured import secured
from kafkalite.testing.timing import Time

if TYPE_CHECKING:
    from kafkalite.env.disk import Disk
    from kafkalite.env.memory import DiskImage
    from kafkalite.security.client_login import Security
    from kafkalite.testing.exchange import Exchange
    from kafkalite.testing.exploring import Explorer

__all__ = ["BrokerFailed", "EmbeddedKafka"]

OF_THE_PARENT = (
    "the broker is that of the process which this one was forked from, where alone it is told what "
    "to do: clients may use it here, or make an EmbeddedKafka"
)


@dataclass(slots=True, frozen=True)
class Snapshot:
    """What brokers had at one moment."""

    image: DiskImage
    brokers: int

    def __repr__(self) -> str:
        return f"<Snapshot of {self.brokers} broker{'s' * (self.brokers > 1)}>"

    def check(self, brokers: int) -> None:
        if brokers != self.brokers:
            raise ValueError(f"the snapshot is of {self.brokers} brokers, and here are {brokers}")


class EmbeddedKafka(Asking, OneOfSeveral):
    """One broker or a few; `start` and `stop`, or a `with` block.

    data_dir: a directory (str or Path) to keep data in; in memory without one.
    topics: what is created unless it is there: numbers of partitions by name, with configs
        {"orders": (3, {"retention.ms": 1000})}, or a list of names.
    settings: of a server.properties, {"num.partitions": 3, "auto.create.topics.enable": False}.
    host, port: where the first broker listens; port 0 is one that is free.
    brokers: how many there are.
    racks: the `broker.rack` of each, ["a", "b", "b"].
    security: "ssl", "sasl_ssl" or "sasl_plaintext"; certificates are made.
    mechanism, users: of logins: "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512", {"alice": "secret"}.
        The first is who `client_config` and the helpers are.
    client_certificates: names of those who get one, ["alice"]; all clients have to show one.
    profile: of which release of Apache Kafka they speak the versions, such as "kafka-2.8".
    metrics: whether it counts and tells Prometheus, at `metrics_url`; or where, "127.0.0.1:9404".
    acls: access rules, such as "User:alice read topic orders-*"; where there is no `security`,
        settings name the authorizer.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        topics: Topics | None = None,
        settings: Settings | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        brokers: int = 1,
        racks: Iterable[str] = (),
        profile: str | None = None,
        security: str | None = None,
        mechanism: str | None = None,
        users: Mapping[str, str] | None = None,
        client_certificates: Iterable[str] = (),
        acls: Iterable[str | Acl] = (),
        metrics: str | bool | None = None,
    ) -> None:
        self._numbers = Numbers(metrics)
        self._run: Run | None = None
        self._guard = threading.RLock()  # also for a signal's handler on the same thread
        self._disk: Disk | None = None
        self._controls = Controls(Shift(), Faults(self._tell), Observers(), Explored())
        count = arguments.broker_count(brokers)
        texts = arguments.settings(settings)
        arguments.check_directories(data_dir, texts, count)
        arguments.check_ids(texts, count)
        self._plan = Plan(
            arguments.folder(data_dir),
            arguments.topics(topics),
            texts,
            arguments.host(host),
            [arguments.port_number(port)] + [0] * (count - 1),
            arguments.profile(profile),
            acls=arguments.acls(acls, texts, is_secured=security is not None),
            is_counted=self._numbers.are_counted,
            racks=arguments.racks(racks, texts, count),
        )
        self._plan.secured = secured(
            security, mechanism, users, client_certificates,
            host=self._plan.host, has_rules=bool(self._plan.acls), are_several=count > 1,
        )  # fmt: skip

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

    async def __aenter__(self) -> EmbeddedKafka:
        starting = asyncio.ensure_future(asyncio.to_thread(self.start))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:  # nobody comes to the end of the block
            await asyncio.to_thread(self.stop)
            with suppress(BrokerFailed):
                await starting
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def __del__(self) -> None:
        run: Run | None = getattr(self, "_run", None)
        if run is not None and run.is_alive:
            run.stop_soon()
            warnings.warn(f"{self!r} was not stopped", ResourceWarning, source=self, stacklevel=2)

    @property
    def is_running(self) -> bool:
        """Whether it serves, or is about to."""
        return self._run is not None and self._run.is_alive

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked from the one that it runs in."""
        return self._run is not None and self._run.is_inherited

    def start(self) -> EmbeddedKafka:
        """Returns when the broker serves; after `stop` again, on what is there and on the same
        ports."""
        with self._guard:
            if self.is_running:
                raise BrokerFailed("the broker runs already")
            self._check_is_ours()
            run = self._run = Run(self._plan, self._disk, self._controls)
        try:
            self._numbers.begin(run)
        finally:
            self._disk = run.disk
        self._plan = run.plan
        self._add_users(run)
        return self

    def _add_users(self, run: Run) -> None:
        for request in () if self._plan.secured is None else self._plan.secured.requests:
            run.ask("add its users", partial(acting.add_users, run, request))

    @property
    def _security(self) -> Security | None:
        return None if self._plan.secured is None else self._plan.secured.security

    def client_config(self, library: str, user: str | None = None) -> dict[str, Any]:
        """What a client of a library is to be told: "kafka-python", "aiokafka", "confluent",
        "java" or "spark"; where not everybody may come, to be this user, or the first. The files
        that it names are there until the stop."""
        if self._plan.secured is not None:
            return self._plan.secured.client_config(library, self.bootstrap_servers, user)
        if user is not None:
            raise ValueError(f"user={user!r}: nobody is somebody here without security=…")
        return super().client_config(library)

    def stop(self, *, unclean: bool = False) -> None:
        """Ends connections, and makes what is in a directory last. Returns when all has ended, at
        once where nothing runs; in a forked child, whose parent the broker belongs to, too.

        Unclean is as `kill -9`: connections break off, nothing more is written, and the next start
        has to recover."""
        self._numbers.stop()
        if self._run is not None and unclean:
            self._run.kill()
        elif self._run is not None:
            self._run.stop()

    def restart(self) -> EmbeddedKafka:
        """Stops and starts on the same data and the same ports."""
        self.stop()
        return self.start()

    def snapshot(self) -> Snapshot:
        """All that there is, of brokers in memory: topics, records, groups, producer ids, open
        transactions. Connections go on, as over a restart; it costs the same however much it is."""
        from kafkalite.testing import renewing

        run = self._running()
        found: list[DiskImage] = []
        run.ask("take a snapshot", lambda outcome: renewing.snapshot(run, found, outcome))
        self._disk = run.disk
        return Snapshot(found[0], len(self._plan.ports))

    def restore(self, snapshot: Snapshot) -> None:
        """Goes on with what a snapshot holds, as often as one likes. Connections go on."""
        from kafkalite.testing import renewing

        run = self._running()
        snapshot.check(len(self._plan.ports))
        run.ask("restore a snapshot", lambda it: renewing.restore(run, snapshot.image, it))
        self._disk = run.disk

    def reset(self) -> None:
        """Goes on with nothing but the topics that it began with. Connections go on."""
        from kafkalite.testing import renewing

        run = self._running()
        run.ask("begin again", lambda outcome: renewing.restore(run, None, outcome))
        self._disk = run.disk
        self._add_users(run)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, **options: Any) -> EmbeddedKafka:
        """Another one that begins with what a snapshot holds, and has nothing to do with where it
        was taken. Not started yet."""
        from kafkalite.env.memory import MemoryDisk

        kafka = cls(brokers=snapshot.brokers, **options)
        kafka._disk = MemoryDisk.of(snapshot.image, lambda: time.time_ns() // 1_000_000)
        return kafka

    def disconnect(self) -> None:
        """Breaks off all connections, whatever they are owed; clients may come again at once."""
        run = self._running()
        run.ask("disconnect its clients", partial(acting.disconnect, run))

    # --- what goes wrong, and when ----------------------------------------------------------

    @property
    def clock(self) -> Time:
        """The brokers' time: `clock.freeze()`, `clock.advance(days=7)`."""
        return Time(self._running, self._controls.shift)

    def fail(
        self,
        api: str,
        *,
        error: str | int,
        times: int | None = 1,
        when: When | None = None,
    ) -> Fault:
        """Answers requests of an API with an error and does nothing for them: so many, or all of
        them with `times=None`; those for which `when(request)` is true."""
        return self._add(api, Act.REFUSE, times, when, error=error_named(error))

    def delay(
        self, api: str, *, ms: SupportsFloat, times: int | None = 1, when: When | None = None
    ) -> Fault:
        """Does what is asked at once, and replies later."""
        return self._add(api, Act.DELAY, times, when, duration_ms=arguments.ms(ms))

    def throttle(
        self, api: str, *, ms: SupportsFloat, times: int | None = 1, when: When | None = None
    ) -> Fault:
        """Tells the client in its reply to be silent, and hears nothing from it for that long."""
        return self._add(api, Act.THROTTLE, times, when, duration_ms=arguments.ms(ms))

    def drop_connection(
        self, api: str, *, times: int | None = 1, when: When | None = None
    ) -> Fault:
        """Ends the connection instead of doing what is asked."""
        return self._add(api, Act.DISCONNECT, times, when)

    def lose_reply(self, api: str, *, times: int | None = 1, when: When | None = None) -> Fault:
        """Does what is asked, and ends the connection instead of replying: the lost
        acknowledgement."""
        return self._add(api, Act.LOSE_REPLY, times, when)

    def hold(self, api: str, *, times: int | None = 1, when: When | None = None) -> Fault:
        """Has requests wait, and what comes behind them on their connection, until `release()` of
        what this returns."""
        return self._add(api, Act.HOLD, times, when)

    def explore(
        self,
        seed: int | str | None = None,
        *,
        kinds: Iterable[str] | None = None,
        rate: float | None = None,
        schedule: Iterable[Any] | None = None,
    ) -> Explorer:
        """Makes choices that a real broker may make at any time and a correct client must stand:
        by a seed, of these kinds or all, at this share of requests, or as a schedule says. Ends
        what was explored before."""
        from kafkalite.testing.exploring import RATE, Explorer

        self._check_is_ours()
        explored = self._controls.explored
        share = RATE if rate is None else rate
        explorer = Explorer(explored, seed, kinds=kinds, rate=share, schedule=schedule)
        explored.chooser = explorer
        return explorer

    def no_faults(self) -> None:
        """Takes all of these back; what is held goes on, and nothing more is explored."""
        self._controls.faults.clear()
        self._controls.explored.chooser = None

    def _add(
        self, api: str, act: Act, times: int | None, when: When | None, **more: Any
    ) -> Fault:
        self._check_is_ours()
        check_times(times)
        faults = self._controls.faults
        return faults.add(Fault(faults, api_name(api), act, times=times, when=when, **more))

    def _check_is_ours(self) -> None:
        if self.is_inherited:
            raise BrokerFailed(OF_THE_PARENT)

    def _tell(self, what: Callable[[], None]) -> None:
        run = self._run
        if run is not None and run.is_alive:
            run.tell(what)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Has every request told to somebody once it is replied to, on the broker's thread;
        returns what ends that."""
        return self._controls.observers.add(observer)

    @property
    def exchanges(self) -> list[Exchange]:
        """What clients have asked since `keep_exchanges()`, and what they were replied."""
        return self._controls.observers.exchanges

    def keep_exchanges(self, is_on: bool = True) -> None:
        """Keeps what is said from here on, the last 16 MB of it; what was kept before is gone."""
        self._controls.observers.clear()
        self._controls.observers.is_kept = is_on

    def _reached(self) -> Run:
        """As far as clients go, which in a forked child reach the broker of its parent."""
        run = self._run
        is_parents = run is not None and run.is_inherited and not run.ended.is_there
        return run if run is not None and is_parents else self._running()

    def _running(self) -> Run:
        self._check_is_ours()
        run = self._run
        if run is None or not run.is_alive:
            failure = None if run is None else run.failure
            why = "" if failure is None else f", because it ended ({failure})"
            raise BrokerFailed(f"the broker does not run{why}: start() it") from failure
        return run

    # --- what tests ask ---------------------------------------------------------------------

    @property
    def ports(self) -> list[int]:
        """The port of each broker, also of one that is stopped meanwhile."""
        self._reached()
        return list(self._plan.ports)

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def metrics_url(self) -> str:
        """Where `metrics` are told, before /metrics."""
        return self._numbers.url

    @property
    def bootstrap_servers(self) -> str:
        name = self._plan.host or "localhost"
        host = f"[{name}]" if ":" in name else name
        return ",".join(f"{host}:{port}" for port in self.ports)

    def _can_be_asked(self, what: str) -> None:
        self._reached().check_thread(what)

    def _now_ms(self) -> int:
        return self._reached().now_ms()

    @property
    def listeners(self) -> dict[str, tuple[str, int]]:
        """Where the first broker listens, by the names of its listeners."""
        return dict(self._running().brokers[CONTROLLER].server.addresses)

    def quiesce(self) -> None:
        """Returns when the brokers have nothing under way: what was asked for is done, and what
        that set going."""
        run = self._running()
        run.ask("come to rest", partial(acting.settle, run))

    def run_retention(self) -> None:
        """Removes now what retention does not keep any more; returns when that is done."""
        run = self._running()
        run.ask("run retention", partial(acting.run_retention, run))

    def run_compaction(self) -> None:
        """Compacts all compacted topics now, however little there is to clean; returns when that is
        done. Tombstones go when `delete.retention.ms` has passed: see `clock.advance`."""
        run = self._running()
        run.ask("run compaction", partial(acting.run_compaction, run))

    def create_topic(self, name: str, partitions: int = 1, configs: Settings | None = None) -> None:
        """Creates a topic; it can be used, and lasts as configured, when this returns. BrokerFailed
        when it is refused, or when the broker has ended because its disk failed."""
        arguments.topic("name", name)
        count = arguments.partitions("partitions", partitions)
        texts = arguments.texts("configs", configs)
        run = self._running()
        run.ask(f"create topic {name}", partial(acting.create_topic, run, name, count, texts))
