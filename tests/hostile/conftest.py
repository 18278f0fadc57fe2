"""A broker of its own for each hostile test: `attacked({"kafkalite.frame.timeout.ms": "2000"})`."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kafkalite.cli.serve import WAITS_LEFT, WATCH_WAITS
from tests.compat import brokers
from tests.compat.brokers import KAFKALITE, Broker
from tests.hostile.peers import CONNECTIONS, HealthyClient, allow_open_files


@pytest.fixture
def attacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Broker]]:
    monkeypatch.setenv(WATCH_WAITS, "1")
    allow_open_files(CONNECTIONS + 10_000)
    started: list[Broker] = []

    def start(overrides: Mapping[str, str] | None = None) -> Broker:
        started.append(brokers.start(KAFKALITE, tmp_path / f"{len(started)}", overrides))
        return started[-1]

    yield start
    for each in started:
        each.stop()
    assert not [line for each in started for line in each.log().splitlines() if WAITS_LEFT in line]


@pytest.fixture
def make_healthy() -> Iterator[Callable[[Broker], HealthyClient]]:
    made: list[HealthyClient] = []

    def make(broker: Broker) -> HealthyClient:
        made.append(HealthyClient(broker, f"healthy-{len(made)}"))
        return made[-1]

    yield make
    for each in made:
        each.client.close()
