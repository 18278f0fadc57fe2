"""Counts of connections and lines in the log."""

import logging

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import ManualClock
from kafkalite.server.limits import BURST_LINES, ConnectionCounts, LimitedLog, Limits


def counts(**settings):
    config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
    clock = ManualClock()
    return ConnectionCounts(config, clock), clock


def test_settings_have_safe_defaults():
    limits = Limits.of(BrokerConfig({}))
    assert limits.max_request_bytes == 104_857_600
    assert limits.max_queued_request_bytes >= limits.max_request_bytes
    assert 0 < limits.frame_timeout_ms <= 60_000
    assert limits.max_idle_ms == 600_000


def test_connections_are_counted_in_all():
    counted, _ = counts(max_connections="2")
    assert counted.admit("a") is None
    assert counted.admit("b") is None
    assert counted.admit("c") == "max.connections"
    counted.leave("a")
    assert counted.admit("c") is None


def test_connections_are_counted_by_address_with_exceptions():
    counted, _ = counts(max_connections_per_ip="1", max_connections_per_ip_overrides="b:2,::1:0")
    assert counted.admit("a") is None
    assert counted.admit("a") == "max.connections.per.ip"
    assert [counted.admit("b") for _ in range(3)] == [None, None, "max.connections.per.ip"]
    assert counted.admit("::1") == "max.connections.per.ip"


def test_addresses_that_left_are_forgotten():
    counted, _ = counts()
    for i in range(1000):
        counted.admit(f"10.0.0.{i}")
        counted.leave(f"10.0.0.{i}")
    assert counted.total == 0
    assert counted._by_host == {}


def test_new_connections_have_a_rate():
    counted, clock = counts(max_connection_creation_rate="3")
    assert [counted.admit("a") for _ in range(4)][3] == "max.connection.creation.rate"
    clock.advance(1000)
    assert counted.admit("a") is None


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
