"""What becomes of pushed metrics is said where it is not what somebody may expect."""

from __future__ import annotations

import pytest

from kafkalite.broker import telemetry
from kafkalite.broker.telemetry import receiver_of
from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.env import manual_env
from kafkalite.server.limits import LimitedLog
from kafkalite.telemetry.receiver import Receiver


@pytest.fixture(autouse=True)
def without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "can_read", lambda: False)


def receiver(is_told: bool, **settings: str) -> Receiver:
    env = manual_env()
    return receiver_of(env, BrokerConfig(settings), LimitedLog(env.clock), is_told=is_told)


@pytest.mark.parametrize("is_told", [True, False])
def test_who_counts_hears_what_is_missing(
    is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert receiver(is_told).series is None
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == is_told
    assert all("pip install 'kafkalite[telemetry]'" in line for line in lines)


def test_who_would_have_it_sent_on_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="opentelemetry-proto"):
        receiver(False, **{"kafkalite.telemetry.url": "http://127.0.0.1:1/v1/metrics"})
