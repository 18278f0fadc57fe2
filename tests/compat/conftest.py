"""The fixture for both brokers, and a table of what was shown with which client.

Each test that takes `broker` runs twice: on kafkalite and on Apache Kafka 4.3, or on 3.9 if it is
marked `old_protocol`. `--broker` picks one: kafkalite, or apache-kafka. A test with the mark
`clients_with` runs on both with each client of other languages that has the features it names.
One broker of each kind serves the whole run, so a test uses topics and groups of its own names;
`start_broker` gives a test a broker of its own where settings or ends differ.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bench.raw_client import RawClient
from bench.raw_client import make_topic as create_topic
from tests.compat import brokers, other_clients
from tests.compat.brokers import APACHE_KAFKA_3, BROKERS, KAFKALITE, Broker
from tests.compat.java_tools import JavaTools
from tests.compat.other_clients import Client, Program

StartBroker = Callable[..., Broker]
StartProgram = Callable[[], Program]
MakeTopic = Callable[..., str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "broker_kind" not in metafunc.fixturenames:
        return
    chosen = metafunc.config.getoption("--broker") or ""
    able = metafunc.definition.get_closest_marker("clients_with")
    if able is not None:
        pairs = other_clients.cases(chosen, able.args)
        metafunc.parametrize(("broker_kind", "client"), pairs, scope="session")
        return
    is_old = metafunc.definition.get_closest_marker("old_protocol") is not None
    kinds = (KAFKALITE, APACHE_KAFKA_3) if is_old else BROKERS
    is_seldom = metafunc.definition.get_closest_marker("theirs_in_full") is not None
    metafunc.parametrize(
        "broker_kind",
        [
            pytest.param(kind, marks=pytest.mark.full) if is_seldom and kind != KAFKALITE else kind
            for kind in kinds
            if kind.startswith(chosen)
        ],
        scope="session",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.compat)


_AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def authorized(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """Of its own for a module: with access rules, and whoever is nobody may all."""
    broker = brokers.start(broker_kind, tmp_path_factory.mktemp("authorized"), _AUTHORIZED)
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def broker(broker_kind: str, run_folder: Path) -> Broker:
    """A running broker, shared by all tests of the run."""
    return brokers.shared(broker_kind, run_folder)


@pytest.fixture
def start_broker(broker_kind: str, tmp_path: Path) -> Iterator[StartBroker]:
    """Starts brokers for one test: `start_broker({"log.retention.ms": "1000"})`.

    `folder` starts one again on the data of another, `port` under its address.
    """
    started: list[Broker] = []

    def start(
        overrides: Mapping[str, str] | None = None, folder: Path | None = None, port: int = 0
    ) -> Broker:
        home = folder or tmp_path / f"broker-{len(started)}"
        started.append(brokers.start(broker_kind, home, overrides, port=port))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaTools]:
    """Apache Kafka's tools; the tests that take it are of one group, so that one JVM has them."""
    tools = JavaTools(tmp_path_factory.mktemp("classes"))
    yield tools
    tools.close()


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Makes names that no other test uses: `unique("group")`."""
    test = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.removeprefix("test_"))
    return lambda what: f"{test[:60]}-{what}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    """A name for a topic; the broker or the test creates it."""
    return unique("topic")


@pytest.fixture
def make_topic(broker: Broker, unique: Callable[[str], str]) -> MakeTopic:
    """Makes topics: `make_topic(3, max_message_bytes="1000")`."""

    def make(partitions: int = 1, **configs: str) -> str:
        name = unique("topic")
        raw = RawClient(broker.host, broker.port)
        create_topic(raw, name, partitions, **configs)
        raw.close()
        return name

    return make


@pytest.fixture
def start_program(broker: Broker, client: Client, record_property) -> Iterator[StartProgram]:
    """Starts programs of the client; those that members of a group need run at once."""
    record_property("client", client.name)
    started: list[Program] = []

    def start() -> Program:
        started.append(Program(client, broker.bootstrap))
        return started[-1]

    yield start
    for program in started:
        program.kill()


@pytest.fixture
def program(start_program: StartProgram) -> Program:
    return start_program()
