"""Which listener brokers use among each other."""

from __future__ import annotations

import pytest

from kafkalite.config import broker as module
from kafkalite.config import broker_config

MAP = "A:PLAINTEXT,B:PLAINTEXT,PLAINTEXT:PLAINTEXT"
OPEN = "A://127.0.0.1:0,B://127.0.0.1:0"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"listeners": OPEN, "inter.broker.listener.name": "b"}, "B"),
        ({"listeners": f"{OPEN},PLAINTEXT://127.0.0.1:0"}, "PLAINTEXT"),
        ({"listeners": OPEN}, "A"),
    ],
)
def test_it_is_the_named_one_or_that_of_the_protocol_or_the_first(
    settings: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = broker_config(
        {"log.dirs": "/data", "listener.security.protocol.map": MAP, **settings}
    )
    assert config.inter_broker_listener == name

    def parsed_again(*_: object) -> None:
        raise AssertionError("it is asked for with each question")

    monkeypatch.setattr(module, "parse_listeners", parsed_again)
    assert config.inter_broker_listener == name
