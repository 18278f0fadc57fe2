"""Counts of connections and lines in the log."""

import logging

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import ManualClock
from kafkalite.server.limits import BURST_LINES, LimitedLog, Limits


def test_settings_have_safe_defaults():
    limits = Limits.of(BrokerConfig({}))
    assert limits.max_request_bytes == 104_857_600
    assert limits.max_queued_request_bytes >= limits.max_request_bytes
    assert 0 < limits.frame_timeout_ms <= 60_000
    assert limits.max_idle_ms == 600_000


def test_a_flood_of_one_kind_is_a_few_lines_and_a_count(caplog):
    clock = ManualClock()
    log = LimitedLog(clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(10_000):
            log.warn("malformed", "a bad frame")
        assert len(caplog.records) == BURST_LINES
        clock.advance(1_000)
        log.warn("malformed", "a bad frame")
    unwritten = 10_000 - BURST_LINES
    assert caplog.records[-1].message == f"a bad frame ({unwritten} more like it were not logged)"
    assert log.counts["malformed"] == 10_001


def test_kinds_have_their_own_allowance(caplog):
    log = LimitedLog(ManualClock())
    for _ in range(1_000):
        log.warn("malformed", "a bad frame")
    log.warn("slow", "a slow one")
    assert caplog.records[-1].message == "a slow one"


def test_a_mistake_of_ours_is_logged_with_its_stack(caplog):
    LimitedLog(ManualClock()).bug("bug", "it failed", ValueError("why"))
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].levelno == logging.ERROR
