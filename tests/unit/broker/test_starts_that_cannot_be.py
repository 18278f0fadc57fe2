"""A broker that cannot start ends, and says why; whatever went wrong, and wherever."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafkalite.broker import Broker
from kafkalite.broker.replicas import Replicas
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.server.listener import Server
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

STEPS: list[tuple[type, str]] = [
    (Broker, "_build_coordinators"),
    (Server, "start"),
    (LocalController, "fence_absent"),
    (Broker, "_register"),
    (Replicas, "start"),
    (Metadata, "subscribe"),
]


def failing(error: Exception) -> Callable[..., Any]:
    def step(*_: Any, **__: Any) -> Any:
        raise error

    return step


@pytest.mark.parametrize("brokers", [1, 2])
@pytest.mark.parametrize("error", [ValueError("odd"), OSError("odd"), AssertionError("odd")])
@pytest.mark.parametrize(("owner", "name"), STEPS)
def test_whatever_a_start_meets_ends_it(
    owner: type, name: str, error: Exception, brokers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, failing(error))
    begun, threads = time.monotonic(), threading.active_count()
    kafka = EmbeddedKafka(brokers=brokers)
    with pytest.raises(BrokerFailed, match="odd") as failure:
        kafka.start()
    assert failure.value.__cause__ is not None
    assert time.monotonic() - begun < 10  # START_TIMEOUT_SECONDS is 30
    assert threading.active_count() == threads
    monkeypatch.undo()
    with kafka:
        kafka.create_topic("t")


@pytest.mark.parametrize("host", ["..", "a" * 64, "not there", "\udcff", "999.0.0.1"])
def test_a_host_that_cannot_be_one_is_told(host: str) -> None:
    begun = time.monotonic()
    with pytest.raises(BrokerFailed):
        EmbeddedKafka(host=host).start()
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize("name", ["broker.rack", "node.rack", "advertised.listeners"])
def test_what_is_no_text_is_refused(name: str) -> None:
    with pytest.raises(BrokerFailed, match=rf"{name}: .* is not UTF-8"):
        EmbeddedKafka(settings={name: "PLAINTEXT://\ud800:1"}).start()
