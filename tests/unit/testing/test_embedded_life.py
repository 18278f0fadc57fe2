"""Starts, failures and stops of brokers in a test's process: in any order, and nothing is left."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent

import pytest

from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
from kafkalite.testing.outside import OutsideKafka

TIMES = 500
LINUX = sys.platform == "linux"


@dataclass
class Left:
    """What this process and this machine hold."""

    descriptors: int
    threads: int
    temporary: int

    @classmethod
    def now(cls) -> Left:
        gc.collect()
        folder = "/proc/self/fd" if LINUX else "/dev/fd"
        temporary = os.listdir(tempfile.gettempdir())
        return cls(len(os.listdir(folder)), threading.active_count(), len(temporary))


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def in_threads(count: int, act: Callable[[], object]) -> list[object]:
    """What each of so many threads got, or raised, that did the same at once."""
    together, got = threading.Barrier(count), list[object]()

    def one() -> None:
        together.wait(10)
        try:
            got.append(act())
        except Exception as error:  # noqa: BLE001 the test looks at it
            got.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    return got


@pytest.fixture(autouse=True, scope="module")
def first() -> None:
    """The first loop of a process opens what stays open until its end."""
    with EmbeddedKafka(topics={"warm": 1}):
        pass


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


def said_by(act: Callable[[], object]) -> str:
    """Why it failed, nothing when it did not."""
    try:
        act()
    except BrokerFailed as failure:
        return str(failure)
    return ""


# --- nothing is left ------------------------------------------------------------------------------


def test_five_hundred_starts_leave_nothing_behind() -> None:
    before = Left.now()
    for number in range(TIMES):
        with EmbeddedKafka(topics={"orders": 1}) as kafka:
            port = kafka.port
        assert number % 100 or not is_listening(port)
    assert Left.now() == before


REFUSALS: list[Callable[[Path], EmbeddedKafka]] = [
    lambda _: EmbeddedKafka(settings={"num.partition": 3}),
    lambda _: EmbeddedKafka(settings={"listeners": "SASL_SSL://127.0.0.1:0"}),
    lambda _: EmbeddedKafka(topics={"no such/name": 1}),
    lambda folder: EmbeddedKafka(folder / "file"),
    lambda folder: EmbeddedKafka(folder / "others"),
]


def test_five_hundred_refusals_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "meta.properties").write_text("version=1\ncluster.id=x\nnode.id=7\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refusals = [*REFUSALS, lambda _: EmbeddedKafka(port=port), lambda _: second_cannot(port)]
        for refused in refusals:
            with pytest.raises(BrokerFailed, match="could not start: "):
                refused(tmp_path).start()
        before = Left.now()
        for number in range(TIMES):
            with pytest.raises(BrokerFailed, match="could not start: "):
                refusals[number % len(refusals)](tmp_path).start()
        assert Left.now() == before


def used_awkwardly(kafka: EmbeddedKafka) -> None:
    """Leaves rules, what they hold, clients, observers and a frozen clock to the end of its run."""
    kafka.keep_exchanges()
    kafka.observe(lambda _: None)
    kafka.produce("orders", "one")
    assert kafka.records("orders")
    kafka.clock.freeze()
    kafka.clock.advance(days=1)
    for act in (kafka.hold, partial(kafka.delay, ms=60_000), partial(kafka.throttle, ms=60_000)):
        fault = act("Metadata")
        with socket.create_connection(("127.0.0.1", kafka.port)) as client:
            client.sendall(METADATA)
            while not fault.count:
                time.sleep(0.001)
    assert OutsideKafka(kafka.bootstrap_servers).lag("clerks") == []
    kafka.disconnect()


# Version 0 of a request for the metadata of no topic.
METADATA = bytes.fromhex("0000000e 0003 0000 00000001 ffff 00000000")


def test_what_tests_do_to_brokers_leaves_nothing_behind() -> None:
    async def in_a_block(kafka: EmbeddedKafka) -> None:
        async with kafka:
            await asyncio.to_thread(used_awkwardly, kafka)

    # The first time opens what stays open until the end of the process.
    asyncio.run(in_a_block(EmbeddedKafka(topics={"orders": 1})))
    before = Left.now()
    for number in range(6):
        kafka = EmbeddedKafka(topics={"orders": 1}, brokers=1 + number % 3)
        if number % 2:
            asyncio.run(in_a_block(kafka))
        else:
            used_awkwardly(kafka.start())
            kafka.stop(unclean=True)
        assert Left.now() == before


def test_an_object_that_has_gone_takes_all_of_its_runs_with_it() -> None:
    """In a process of its own, in which no other test looks at them."""
    done = run_program(
        """
        import gc
        import sys

        sys.path.insert(0, sys.argv[1])
        from kafkalite.env.memory import MemoryDisk
        from kafkalite.server.connection_info import ConnectionInfo
        from kafkalite.testing.clock import SteeredTimer
        from kafkalite.testing.embedded import EmbeddedKafka
        from kafkalite.testing.exchange import Exchange
        from kafkalite.testing.faults import Fault
        from kafkalite.testing.running import Run
        from kafkalite.testing.stage import Stage
        from tests.unit.testing.test_embedded_life import used_awkwardly

        KINDS = (Run, Stage, Fault, Exchange, ConnectionInfo, MemoryDisk, SteeredTimer)
        kafka = EmbeddedKafka(topics={"orders": 1})
        for is_unclean in (False, True):
            used_awkwardly(kafka.start())
            assert [each for each in gc.get_objects() if isinstance(each, Run)]
            kafka.stop(unclean=is_unclean)
        del kafka
        gc.collect()
        print([each for each in gc.get_objects() if isinstance(each, KINDS)])
        """,
        str(Path(__file__).parents[3]),
    )
    assert done.stdout == "[]\n", done.stderr


def second_cannot(port: int) -> EmbeddedKafka:
    """Three brokers, the second of which finds its port taken."""
    kafka = EmbeddedKafka(brokers=3)
    kafka._plan.ports[1] = port
    return kafka


# --- what fails -----------------------------------------------------------------------------------


def test_the_broker_that_does_not_start_is_named_and_the_others_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        kafka = second_cannot(taken.getsockname()[1])
        begun = time.monotonic()
        with pytest.raises(BrokerFailed, match=r"^broker 2 of 3 could not start:") as failed:
            kafka.start()
        assert time.monotonic() - begun < 10
        assert isinstance(failed.value.__cause__, OSError)
        assert not kafka.is_running
    with kafka:  # nobody has the port any more
        assert len(kafka.ports) == 3


def test_a_start_that_failed_can_be_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        kafka = EmbeddedKafka(port=port)
        for _ in range(3):
            with pytest.raises(BrokerFailed, match="in use"):
                kafka.start()
            kafka.stop()
    with kafka:
        assert kafka.port == port


def test_what_runs_is_not_started_again() -> None:
    with EmbeddedKafka() as kafka:
        with pytest.raises(BrokerFailed, match="runs already"):
            kafka.start()
        kafka.create_topic("still-here")


def test_what_does_not_run_says_so() -> None:
    kafka = EmbeddedKafka()
    for ask in (lambda: kafka.port, lambda: kafka.create_topic("x"), lambda: kafka.stop_broker(1)):
        with pytest.raises(BrokerFailed, match="does not run"):
            ask()


# --- any order, any thread ------------------------------------------------------------------------


def test_stop_before_start_and_twice_is_no_more_than_stop() -> None:
    kafka = EmbeddedKafka()
    kafka.stop()
    kafka.start()
    kafka.stop()
    kafka.stop()
    with kafka:
        kafka.create_topic("orders")


def test_a_stopped_broker_comes_back_on_its_port_with_what_it_had() -> None:
    kafka = EmbeddedKafka(topics={"first": 1}).start()
    port = kafka.port
    for number in range(20):
        kafka.create_topic(f"topic-{number}")
        kafka.stop()
        assert not is_listening(port)
        kafka.start()
        assert kafka.port == port
        with pytest.raises(BrokerFailed, match="already exists"):
            kafka.create_topic(f"topic-{number}")
    kafka.stop()


def test_many_threads_may_stop_the_same_broker() -> None:
    for _ in range(10):
        kafka = EmbeddedKafka().start()

        def stop(kafka: EmbeddedKafka = kafka) -> bool:
            kafka.stop()
            return kafka.is_running

        assert in_threads(5, stop) == [False] * 5


def test_of_many_threads_that_start_a_broker_one_does() -> None:
    for _ in range(10):
        kafka = EmbeddedKafka()
        got = in_threads(5, kafka.start)
        assert [each for each in got if each is kafka] == [kafka]
        assert sum("runs already" in str(each) for each in got) == 4
        kafka.stop()


def test_starts_and_stops_of_many_threads_end_in_an_object_that_works() -> None:
    kafka, before = EmbeddedKafka(), Left.now()
    turns = iter(range(40))

    def either() -> None:
        for number in turns:
            told = said_by(kafka.start if number % 2 else kafka.stop)
            assert not told or "runs already" in told or "meanwhile" in told

    assert in_threads(4, either) == [None] * 4
    kafka.stop()
    with kafka:
        kafka.create_topic("orders")
    assert Left.now() == before


def test_whoever_waits_for_a_topic_when_the_broker_stops_is_told() -> None:
    kafka = EmbeddedKafka().start()
    names = iter(f"topic-{number}" for number in range(1_000_000))

    def create() -> object:
        while True:
            kafka.create_topic(next(names))

    stopper = threading.Timer(0.1, kafka.stop)
    stopper.start()
    assert all(isinstance(each, BrokerFailed) for each in in_threads(3, create))
    stopper.join()


def test_a_signals_handler_may_stop_what_is_being_started_or_stopped() -> None:
    kafka = EmbeddedKafka()
    previous = signal.signal(signal.SIGALRM, lambda *_: kafka.stop())
    try:
        for number in range(50):
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0002 * number)
            told = said_by(kafka.start)
            assert not told or "meanwhile" in told
            kafka.stop()
        time.sleep(0.02)
        assert not kafka.is_running
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_a_start_that_is_interrupted_leaves_nothing() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = Left.now()
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(20):
            kafka = EmbeddedKafka()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0002 * number)
                kafka.start()
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                kafka.stop()
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert Left.now() == before


# --- nobody said stop -----------------------------------------------------------------------------


def test_an_object_that_is_dropped_ends_its_broker_and_says_so() -> None:
    before = Left.now()
    kafka = EmbeddedKafka().start()
    port = kafka.port
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del kafka
        gc.collect()
    assert ["was not stopped" in str(each.message) for each in told] == [True]
    deadline = time.monotonic() + 10
    while Left.now() != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert Left.now() == before
    assert not is_listening(port)


def run_program(text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", dedent(text), *words],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip


def test_the_end_of_the_interpreter_closes_a_directory_in_good_order(tmp_path: Path) -> None:
    done = run_program(
        """
        import sys
        from kafkalite.testing.embedded import EmbeddedKafka
        kafka = EmbeddedKafka(sys.argv[1]).start()
        kafka.create_topic("kept")
        """,
        str(tmp_path / "data"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("way", ["os._exit(0)", "sys.exit(0)"])
def test_a_forked_child_neither_waits_nor_ends_what_is_its_parents(way: str) -> None:
    done = run_program(
        f"""
        import os, sys, time, socket
        from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
        kafka = EmbeddedKafka().start()
        child = os.fork()
        if child == 0:
            begun = time.monotonic()
            kafka.stop()
            kafka.stop()
            assert not kafka.is_running and time.monotonic() - begun < 1
            with EmbeddedKafka() as own:
                own.create_topic("of-the-child")
            try:
                kafka.start()
            except BrokerFailed as failure:
                assert "forked from" in str(failure)
            {way}
        assert os.waitpid(child, 0)[1] == 0
        kafka.create_topic("of-the-parent")
        socket.create_connection(("127.0.0.1", kafka.port)).close()
        kafka.stop()
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_lives_on_keeps_no_port_of_its_parent() -> None:
    kafka = EmbeddedKafka().start()
    port = kafka.port
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a process of several threads
        child = os.fork()
    if child == 0:
        time.sleep(30)
        os._exit(0)
    try:
        kafka.stop()
        assert not is_listening(port)
        with kafka:
            assert kafka.port == port
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_reaches_its_parents_broker_and_steers_nothing() -> None:
    done = run_program(
        """
        import os
        from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
        kafka = EmbeddedKafka(topics=["orders"]).start()
        child = os.fork()
        if child == 0:
            kafka.produce("orders", "of the child")
            assert kafka.records("orders").one().text == "of the child"
            assert kafka.client_config("kafka-python")
            for steered in (
                lambda: kafka.fail("Produce", error="NOT_CONTROLLER"), lambda: kafka.explore(1),
                kafka.reset, lambda: kafka.create_topic("more"), kafka.clock.freeze,
            ):
                try:
                    steered()
                except BrokerFailed as failure:
                    assert "forked from" in str(failure), failure
                else:
                    raise AssertionError(steered)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert kafka.records("orders").one().text == "of the child"
        kafka.stop()
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
