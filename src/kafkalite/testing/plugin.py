"""The pytest plugin: fixtures with a broker. Loaded by pytest wherever kafkalite is installed.

`kafkalite` is one broker for the whole run, in memory; `fresh_kafkalite` is one for a single test.
Both start in a few thousandths of a second, when a test first asks. What all brokers of a run are
like stands in pytest's configuration:

    [tool.pytest.ini_options]
    kafkalite_settings = ["num.partitions=3", "auto.create.topics.enable=false"]
    kafkalite_topics = ["orders:3", "payments"]
    kafkalite_brokers = "3"

and what the broker of one test is like beside the test, in the words of `EmbeddedKafka`:

    @pytest.mark.kafkalite(brokers=3, settings={"default.replication.factor": 3})
    def test_orders(fresh_kafkalite): ...

Where one test needs several brokers, `with EmbeddedKafka(...) as other:` makes more.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kafkalite.testing.embedded import EmbeddedKafka

MARKER = "kafkalite"
FRESH = "fresh_kafkalite"
_shared = pytest.StashKey["EmbeddedKafka"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "kafkalite_settings", "settings of the fixtures' brokers, NAME=VALUE", "linelist", []
    )
    parser.addini(
        "kafkalite_topics", "topics that they begin with, NAME or NAME:PARTITIONS", "linelist", []
    )
    parser.addini("kafkalite_brokers", "how many brokers each is made of", "string", "1")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(settings=, topics=, brokers=, data_dir=, host=, port=): "
        f"what {FRESH} is like for this test",
    )


@pytest.fixture(scope="session")
def kafkalite(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """A broker that all tests of the run share; give topics names of their own. As the
    `kafkalite_…` options of pytest's configuration describe it."""
    from kafkalite.testing.embedded import EmbeddedKafka

    with EmbeddedKafka(**_configured(request.config)) as broker:
        request.config.stash[_shared] = broker
        yield broker
        del request.config.stash[_shared]


@pytest.fixture
def fresh_kafkalite(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """A broker with nothing in it, for this test alone. As the `kafkalite_…` options describe it,
    and, where the test has it, `@pytest.mark.kafkalite(…)` with the arguments of EmbeddedKafka."""
    from kafkalite.testing.embedded import EmbeddedKafka

    with EmbeddedKafka(**_marked(request.node, _configured(request.config))) as broker:
        yield broker


# --- what brokers are like ------------------------------------------------------------------------


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
            is_added = isinstance(value, dict) and name in ("settings", "topics")
            wanted[name] = {**wanted[name], **value} if is_added else value
    return wanted


# --- what a test must not do to the others --------------------------------------------------------


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that nothing heeds would be a setting that was taken and ignored."""
    is_heeded = FRESH in getattr(item, "fixturenames", ())
    if item.get_closest_marker(MARKER) is not None and not is_heeded:
        pytest.fail(
            f"@pytest.mark.{MARKER} describes the broker of {FRESH}, which this test does not use; "
            "what the broker of the whole run is like stands in pytest's configuration",
            pytrace=False,
        )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Brings back what a test has stopped, and says which it was."""
    yield
    broker = item.config.stash.get(_shared, None)
    if broker is None or broker.is_inherited:
        return
    if not broker.is_running:
        _bring_back(item, f"the broker `{MARKER}`", broker.start)
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
