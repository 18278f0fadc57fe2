"""What is remembered of clients: as long as it matters, and of very many not all."""

from __future__ import annotations

from kafkalite.env.clock import ManualClock
from kafkalite.quotas.gauges import MOST_CLIENTS, Gauges
from kafkalite.quotas.limits import NOBODY
from kafkalite.quotas.rates import MEAN_SAMPLE_MS, NO_LIMIT, Rate, Window


def gauges() -> tuple[Gauges[Rate], ManualClock]:
    clock = ManualClock()
    return Gauges(Rate, Window(11, 1_000), clock), clock


def test_nothing_is_counted_while_nobody_is_limited() -> None:
    made, _ = gauges()
    assert made.take("u", "c", 1e12) == 0
    made.record("u", "c", 1e12)
    assert len(made) == 0


def test_a_limit_that_comes_holds_for_what_was_had_before() -> None:
    made, _ = gauges()
    made.limits.set("other", NOBODY, 1.0)
    assert made.take("u", "c", 20_000) == 0
    made.limits.set("u", NOBODY, 1_000.0)
    assert made.take("u", "c", 1) == 10_001
    made.limits.set("u", NOBODY, None)
    assert made.find("u", "c").limit == NO_LIMIT


def test_clients_that_are_idle_are_forgotten_and_lose_nothing_by_it() -> None:
    made, clock = gauges()
    made.limits.set(NOBODY, None, 100.0)
    for number in range(5_000):
        made.take("u", f"c-{number}", 500)
        clock.advance(10)
    assert len(made) < 1_105, "those of the last eleven seconds"
    assert made.take("u", "c-0", 500) == 0


def test_of_very_many_the_one_that_came_least_lately_is_forgotten() -> None:
    made, _ = gauges()
    made.limits.set(NOBODY, None, 100.0)
    made.take("u", "busy", 2_000)
    for number in range(MOST_CLIENTS + 100):
        made.take("u", f"c-{number}", 1)
        made.record("u", "busy", 0)
    assert len(made) <= MOST_CLIENTS
    assert made.take("u", "busy", 0) == 10_000


def test_the_mean_of_waits_is_of_the_last_minute() -> None:
    made, clock = gauges()
    made.limits.set("u", NOBODY, 1_000.0)
    key = made.limits.key("u", "c")
    assert (made.take("u", "c", 20_000), made.take("u", "c", 1_000)) == (10_000, 11_000)
    assert made.waits() == [(key, 10_500.0)]
    clock.advance(2 * MEAN_SAMPLE_MS - 1)
    assert made.waits() == [(key, 10_500.0)]
    made.waited("u", "c", 100)
    assert made.waits() == [(key, 21_100 / 3)]
    clock.advance(1)
    assert made.waits() == [(key, 100.0)]
    clock.advance(2 * MEAN_SAMPLE_MS)
    assert made.waits() == []


def test_who_is_not_known_waits_for_nothing() -> None:
    made, _ = gauges()
    made.waited("u", "c", 100)
    assert made.waits() == []
