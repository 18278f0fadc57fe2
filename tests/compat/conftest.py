"""The fixture for both brokers, and a table of what was shown with which client.

Each test that takes `broker` runs twice: on kafkalite and on Apache Kafka 4.3, or on 3.9 if it is
marked `old_protocol`. `--broker` picks one: kafkalite, or apache-kafka.
One broker of each kind serves the whole run, so a test uses topics and groups of its own names;
`start_broker` gives a test a broker of its own where settings or ends differ.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA_3, BROKERS, KAFKALITE, Broker

StartBroker = Callable[..., Broker]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "broker_kind" in metafunc.fixturenames:
        is_old = metafunc.definition.get_closest_marker("old_protocol") is not None
        kinds: tuple[str, ...] = (KAFKALITE, APACHE_KAFKA_3) if is_old else BROKERS
        chosen = metafunc.config.getoption("--broker")
        if chosen:
            kinds = tuple(kind for kind in kinds if kind.startswith(chosen))
        metafunc.parametrize("broker_kind", kinds, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.compat)


@pytest.fixture(scope="session")
def broker(broker_kind: str, run_folder: Path) -> Broker:
    """A running broker, shared by all tests of the run."""
    return brokers.shared(broker_kind, run_folder)


@pytest.fixture
def start_broker(broker_kind: str, tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers for one test: `start_broker({"log.retention.ms": "1000"})`.

    `folder` starts one again on the data of another.
    """
    started: list[Broker] = []

    def start(overrides: Mapping[str, str] | None = None, folder: Path | None = None) -> Broker:
        home = folder or tmp_path / f"broker-{len(started)}"
        started.append(brokers.start(broker_kind, home, overrides))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Makes names that no other test uses: `unique("group")`."""
    test = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_"))
    return lambda what: f"{test[:60]}-{what}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    """A name for a topic; the broker or the test creates it."""
    return unique("topic")
