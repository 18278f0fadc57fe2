"""`replica.alter.log.dirs.io.max.bytes.per.second`: how fast moves between directories copy."""

from __future__ import annotations

import pytest

from kafkalite.protocol.messages import IncrementalAlterConfigsRequest
from tests.unit.handlers.whole_broker import WholeBroker
from tests.unit.log.making import batch

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SET, DELETE = 0, 1
BYTES = 100_000


def with_logs(count: int = 1) -> WholeBroker:
    """A topic with some partitions in /one, of 100 KB each."""
    broker = WholeBroker({"log.dirs": "/one,/two"})
    broker.create("t", count)
    for index in range(count):
        log = broker.partition("t", index).log
        while log.home.path != "/one":
            broker.context.logs.move("t", index, "/one", broker.partition("t", index).moved)
            broker.clock.advance(100)
            log = broker.partition("t", index).log
        while log.size < BYTES:
            log.append_as_leader(batch([bytes(900)]), 0)
        log.replicated(log.log_end_offset)
        log.flush()
    return broker


def set_rate(broker: WholeBroker, rate: int | None, name: str = "") -> None:
    request = IncrementalAlterConfigsRequest
    text, step = (None, DELETE) if rate is None else (str(rate), SET)
    config = request.Config(name=RATE, config_operation=step, value=text)
    resource = request.Resource(resource_type=4, resource_name=name, configs=[config])
    answer = broker.ask(request(resources=[resource]), 1).responses[0]
    assert answer.error_code == 0


def move(broker: WholeBroker, index: int = 0) -> None:
    broker.context.logs.move("t", index, "/two", broker.partition("t", index).moved)


def seconds_until_moved(broker: WholeBroker, count: int = 1, most: int = 60) -> float:
    began_ms = broker.clock.monotonic_ms()
    while any(broker.partition("t", each).log.home.path == "/one" for each in range(count)):
        broker.clock.advance(50)
        assert broker.clock.monotonic_ms() < began_ms + most * 1000, "it takes too long"
    return (broker.clock.monotonic_ms() - began_ms) / 1000


def test_without_a_limit_a_move_does_not_wait() -> None:
    broker = with_logs()
    move(broker)
    assert seconds_until_moved(broker) < 0.5


@pytest.mark.parametrize("name", ["", "1"])
def test_a_move_takes_as_long_as_its_bytes_may(name: str) -> None:
    broker = with_logs()
    set_rate(broker, 10_000, name)
    move(broker)
    assert 9 <= seconds_until_moved(broker) <= 11


def test_all_moves_together_keep_to_it() -> None:
    broker = with_logs(4)
    set_rate(broker, 40_000)
    for index in range(4):
        move(broker, index)
    assert 9 <= seconds_until_moved(broker, 4) <= 11


def test_it_may_change_while_a_log_is_moved() -> None:
    broker = with_logs()
    set_rate(broker, 1_000)
    move(broker)
    broker.clock.advance(10_000)
    copy = broker.context.logs.future("t", 0)
    assert copy is not None
    assert 8_000 < copy.size < 12_000
    set_rate(broker, 0)
    broker.clock.advance(100_000)
    assert copy.size < 13_000
    set_rate(broker, None)
    assert seconds_until_moved(broker) < 2


def test_it_holds_after_a_restart() -> None:
    broker = with_logs()
    set_rate(broker, 10_000)
    broker.close()
    broker = broker.started_again()
    move(broker)
    assert 9 <= seconds_until_moved(broker) <= 11


def test_what_it_copies_of_many_small_batches_is_counted_as_what_it_is() -> None:
    broker = with_logs()
    log = broker.partition().log
    while log.size < 2 * BYTES:
        log.append_as_leader(batch([b"x"]), 0)
    log.replicated(log.log_end_offset)
    set_rate(broker, 100_000)
    move(broker)
    assert 1.4 <= seconds_until_moved(broker) <= 2.5
