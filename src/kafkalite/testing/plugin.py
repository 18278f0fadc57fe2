"""The pytest plugin: fixtures with a broker. Loaded by pytest wherever kafkalite is installed.

`kafkalite` is one broker for the whole run, in memory; `fresh_kafkalite` is one for a single test,
and `kafkalite_factory(...)` makes more. `kafkalite_topic` and `kafkalite_group` are names that no
other test has. All start in a few thousandths of a second, when a test first asks. What the brokers
of a run are like stands in pytest's configuration:

    [tool.pytest.ini_options]
    kafkalite_settings = ["num.partitions=3", "auto.create.topics.enable=false"]
    kafkalite_topics = ["orders:3", "payments"]
    kafkalite_brokers = "3"
    kafkalite_scope = "run"

and what the broker of one test is like beside the test, in the words of `EmbeddedKafka`:

    @pytest.mark.kafkalite(brokers=3, settings={"default.replication.factor": 3})
    def test_orders(fresh_kafkalite): ...

With `explore=50` the test runs with so many seeds, each time on a broker that makes other choices
that a real one may make; `--kafkalite-seed=S` runs it with this one alone:

    @pytest.mark.kafkalite(explore=50)
    def test_orders(fresh_kafkalite): ...

With pytest-xdist each worker has its own `kafkalite`, or all of them share one: kafkalite_scope
`worker` or `run`, or `--kafkalite-scope`. With `--kafkalite-url=HOST:PORT` the same tests run on a
Kafka elsewhere, and those that need control of the broker are skipped. The report of a test that
failed shows what was said to its broker.
"""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from kafkalite.testing.embedded import EmbeddedKafka
    from kafkalite.testing.outside import OutsideKafka

MARKER = "kafkalite"
FRESH = "fresh_kafkalite"
FACTORY = "kafkalite_factory"
URL, SCOPE, SEED = "kafkalite_url", "kafkalite_scope", "kafkalite_seed"
EXPLORE = "explore"
SHOWN_EXCHANGES = 40
_shared = pytest.StashKey["EmbeddedKafka"]()
_of_run = pytest.StashKey["EmbeddedKafka"]()
_fresh = pytest.StashKey[list["EmbeddedKafka"]]()


class _Worker(Protocol):
    """A node of pytest-xdist, as its controller sees it."""

    config: pytest.Config
    workerinput: dict[str, Any]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "kafkalite_settings", "settings of the fixtures' brokers, NAME=VALUE", "linelist", []
    )
    parser.addini(
        "kafkalite_topics", "topics that they begin with, NAME or NAME:PARTITIONS", "linelist", []
    )
    parser.addini("kafkalite_brokers", "how many brokers each is made of", "string", "1")
    parser.addini(SCOPE, "whose `kafkalite` is: each worker's, or the run's", "string", "worker")
    group = parser.getgroup("kafkalite")
    group.addoption("--kafkalite-url", dest=URL, metavar="HOST:PORT", default=None,
                    help="test against a Kafka elsewhere; what needs control of it is skipped")
    group.addoption("--kafkalite-scope", dest=SCOPE, choices=("worker", "run"), default=None,
                    help="with pytest-xdist: a broker for each worker, or one for the whole run")
    group.addoption("--kafkalite-seed", dest=SEED, metavar="SEED", default=None,
                    help="run tests that explore with this seed alone")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(settings=, topics=, brokers=, data_dir=, host=, port=, profile=, explore=): "
        f"what {FRESH} is like for this test, and with how many seeds it is to run",
    )
    if not hasattr(config, "workerinput") and config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Controller(), "kafkalite-controller")


class _Controller:
    """In the process that pytest-xdist's workers come from."""

    def pytest_configure_node(self, node: _Worker) -> None:
        """The first worker that begins has the broker of the run started."""
        config = node.config
        if _scope(config) != "run" or config.getoption(URL) is not None:
            return
        broker = config.stash.get(_of_run, None)
        if broker is None:
            from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

            try:
                broker = EmbeddedKafka(**_configured(config)).start()
            except (BrokerFailed, TypeError, ValueError) as error:
                raise pytest.UsageError(f"`{MARKER}` of the run: {error}") from None
            config.stash[_of_run] = broker
        node.workerinput[URL] = broker.bootstrap_servers

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        broker = session.config.stash.get(_of_run, None)
        if broker is not None:
            broker.stop()


# --- fixtures -------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def kafkalite(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka | OutsideKafka]:
    """A broker that all tests of the run share; give topics names of their own. As the
    `kafkalite_…` options of pytest's configuration describe it."""
    url = _url(request.config)
    if url is not None:
        yield _outside(url)
        return
    from kafkalite.testing.embedded import EmbeddedKafka

    with EmbeddedKafka(**_configured(request.config)) as broker:
        broker.keep_exchanges()
        request.config.stash[_shared] = broker
        yield broker
        del request.config.stash[_shared]


@pytest.fixture
def fresh_kafkalite(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """A broker with nothing in it, for this test alone. As the `kafkalite_…` options describe it,
    and, where the test has it, `@pytest.mark.kafkalite(…)` with the arguments of EmbeddedKafka."""
    with _making(request) as make:
        yield make(**_marked(request.node, _configured(request.config)))


@pytest.fixture
def kafkalite_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., EmbeddedKafka]]:
    """Makes brokers for this test, with the arguments of EmbeddedKafka; they end with it. What is
    not said is as the `kafkalite_…` options and the test's marker say."""
    wanted = _marked(request.node, _configured(request.config))
    with _making(request) as make:
        yield lambda **more: make(**{**wanted, **more})


@pytest.fixture
def kafkalite_prefix(request: pytest.FixtureRequest) -> str:
    """What the names of this test begin with, unlike those of any other test and run."""
    plain = re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)
    return f"{plain[:100]}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def kafkalite_group(kafkalite_prefix: str) -> str:
    """A group's name that only this test has."""
    return f"{kafkalite_prefix}-group"


@pytest.fixture
def kafkalite_topic(kafkalite: EmbeddedKafka | OutsideKafka, kafkalite_prefix: str) -> str:
    """A new topic that only this test has, on the shared broker."""
    kafkalite.create_topic(kafkalite_prefix)
    return kafkalite_prefix


class _making:  # noqa: N801 - reads as what it does
    """Brokers of one test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._node = request.node
        self._url = request.config.getoption(URL)
        self._stack = ExitStack()

    def __enter__(self) -> Callable[..., EmbeddedKafka]:
        if self._url is not None:
            pytest.skip(f"needs a broker of its own, and --kafkalite-url says {self._url}")
        return self._make

    def _make(self, **wanted: Any) -> EmbeddedKafka:
        from kafkalite.testing.embedded import EmbeddedKafka

        broker = self._stack.enter_context(EmbeddedKafka(**wanted))
        broker.keep_exchanges()
        self._node.stash.setdefault(_fresh, []).append(broker)
        return broker

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def _outside(url: str) -> OutsideKafka:
    from kafkalite.testing.outside import OutsideKafka

    try:
        return OutsideKafka(url)
    except ValueError as error:
        raise pytest.UsageError(f"--kafkalite-url: {error}") from None


# --- what brokers are like ------------------------------------------------------------------------


def _scope(config: pytest.Config) -> str:
    scope = str(config.getoption(SCOPE) or config.getini(SCOPE)).strip()
    if scope not in ("worker", "run"):
        raise pytest.UsageError(f"{SCOPE} = {scope!r}: expected worker or run")
    return scope


def _url(config: pytest.Config) -> str | None:
    """Where the broker is when it is not one of this process."""
    given = config.getoption(URL)
    workerinput: dict[str, Any] = getattr(config, "workerinput", {})
    found = workerinput.get(URL) if given is None else given
    return None if found is None else str(found)


def _configured(config: pytest.Config) -> dict[str, Any]:
    """The arguments of EmbeddedKafka that pytest's configuration stands for."""
    topics = dict(_topic(line) for line in config.getini("kafkalite_topics"))
    settings = dict(_setting(line) for line in config.getini("kafkalite_settings"))
    count = str(config.getini("kafkalite_brokers")).strip()
    if not count.isdecimal():
        raise pytest.UsageError(f"kafkalite_brokers = {count!r}: expected a number")
    return {"topics": topics, "settings": settings, "brokers": int(count)}


def _setting(line: str) -> tuple[str, str]:
    name, is_one, value = line.partition("=")
    if not is_one or not name.strip():
        raise pytest.UsageError(f"kafkalite_settings: {line!r} is not NAME=VALUE")
    return name.strip(), value.strip()


def _topic(line: str) -> tuple[str, int]:
    name, has_count, count = line.partition(":")
    if has_count and not count.strip().isdecimal():
        raise pytest.UsageError(f"kafkalite_topics: {line!r} is not NAME or NAME:PARTITIONS")
    return name.strip(), int(count) if has_count else -1


def _marked(item: pytest.Item, configured: dict[str, Any]) -> dict[str, Any]:
    """The same with what the markers of a test say, the nearest last; settings and topics are
    added to those of the configuration."""
    wanted = dict(configured)
    for marker in reversed(list(item.iter_markers(MARKER))):
        if marker.args:
            raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.{MARKER} takes keywords only")
        for name, value in marker.kwargs.items():
            if name == EXPLORE:
                continue
            is_added = isinstance(value, dict) and name in ("settings", "topics")
            wanted[name] = {**wanted[name], **value} if is_added else value
    return wanted


# --- what a test must not do to the others --------------------------------------------------------


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that nothing heeds would be a setting that was taken and ignored."""
    is_heeded = not {FRESH, FACTORY}.isdisjoint(getattr(item, "fixturenames", ()))
    if item.get_closest_marker(MARKER) is not None and not is_heeded:
        pytest.fail(
            f"@pytest.mark.{MARKER} describes the broker of {FRESH}, which this test does not use; "
            "what the broker of the whole run is like stands in pytest's configuration",
            pytrace=False,
        )
    broker = item.config.stash.get(_shared, None)
    if broker is not None:
        broker.keep_exchanges()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Takes back what a test did to the broker; brings back what it has stopped, and says which it
    was."""
    yield
    broker = item.config.stash.get(_shared, None)
    if broker is None or broker.is_inherited:
        return
    broker.no_faults()
    if not broker.is_running:
        _bring_back(item, f"the broker `{MARKER}`", broker.start)
    broker.clock.reset()
    for node_id in broker.stopped_brokers:
        what = f"broker {node_id} of `{MARKER}`"
        _bring_back(item, what, partial(broker.start_broker, node_id))


def _bring_back(item: pytest.Item, what: str, start: Callable[[], object]) -> None:
    from kafkalite.testing.embedded import BrokerFailed

    stopped = f"{item.nodeid} stopped {what}, which all tests of the run share"
    try:
        start()
    except BrokerFailed as failure:
        pytest.fail(f"{stopped}, and it does not come back: {failure}", pytrace=False)
    warnings.warn(
        f"{stopped}; it was started again. Take {FRESH} for a test that stops its broker",
        pytest.PytestWarning, stacklevel=1,
    )  # fmt: skip


# --- tests that explore ---------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """A test that explores runs again and again, with the fixtures that it has; others are called
    as ever."""
    wanted = _explored(pyfuncitem)
    if wanted is None:
        return
    if FRESH not in pyfuncitem.funcargs:
        pytest.fail(f"{EXPLORE}= is for the broker of {FRESH}, which this test does not use",
                    pytrace=False)  # fmt: skip
    broker: Any = pyfuncitem.funcargs[FRESH]
    pyfuncitem.obj = partial(_explore, pyfuncitem, pyfuncitem.obj, broker, wanted)


def _explored(item: pytest.Item) -> dict[str, Any] | None:
    """What the nearest marker says of it: how many runs, or runs=, kinds= and rate=."""
    for marker in item.iter_markers(MARKER):
        wanted = marker.kwargs.get(EXPLORE)
        if isinstance(wanted, dict) and wanted.keys() <= {"runs", "kinds", "rate"}:
            return wanted
        if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 0:
            return {"runs": wanted}
        if wanted is not None:
            raise pytest.UsageError(
                f"{item.nodeid}: {EXPLORE}={wanted!r}: expected how many runs, or a dict with "
                "runs, kinds and rate"
            )
    return None


def _explore(
    item: pytest.Function,
    test: Callable[..., Any],
    broker: EmbeddedKafka,
    wanted: dict[str, Any],
    **arguments: Any,
) -> None:
    from kafkalite.testing.explorer import check

    item.obj = test  # for whoever runs it again
    seed = item.config.getoption(SEED)

    def program(_: EmbeddedKafka) -> Any:
        broker.keep_exchanges()  # of a run that fails these are shown
        return test(**arguments)

    try:
        check(broker, program, seeds=None if seed is None else [_seed(seed)], **wanted)
    except BaseException as error:
        failure = getattr(error, "kafkalite_failure", None)
        if failure is not None:
            error.add_note(f"the same seed again: pytest --kafkalite-seed={failure.seed}")
        raise


def _seed(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


# --- what a report shows --------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[None]:
    """What was said to the brokers of a test that failed; a test that asks a Kafka elsewhere for
    what it cannot do is skipped."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if call.excinfo is None:
        return
    if _is_not_ours(call.excinfo):
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = (path, line or 0, f"Skipped: {call.excinfo.value}")
    elif report.failed:
        for broker in _brokers_of(item):
            shown = _told(broker)
            if shown:
                report.sections.append(("what was said to kafkalite", shown))


def _is_not_ours(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    return type(excinfo.value).__name__ == "NotOurs" and (
        type(excinfo.value).__module__ == "kafkalite.testing.outside"
    )


def _brokers_of(item: pytest.Item) -> list[EmbeddedKafka]:
    fresh = item.stash.get(_fresh, [])
    shared = item.config.stash.get(_shared, None)
    return [*fresh, shared] if shared is not None else fresh


def _told(broker: EmbeddedKafka) -> str:
    """The last of it, a line each."""
    exchanges = broker.exchanges
    left_out = len(exchanges) - SHOWN_EXCHANGES
    lines = [f"(and {left_out} before)"] if left_out > 0 else []
    return "\n".join(lines + [str(each) for each in exchanges[-SHOWN_EXCHANGES:]])
