"""Permits for changes of topics: strict, and lenient for who does not know of them."""

from __future__ import annotations

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import ManualClock
from kafkalite.quotas.limits import NOBODY
from kafkalite.quotas.permits import Permits, mutations


def permits(*, is_strict: bool, **settings: str) -> tuple[Permits, ManualClock]:
    clock = ManualClock()
    config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
    buckets = mutations(config, clock)
    buckets.limits.set("u", NOBODY, 1.0)
    return Permits(buckets.find("u", "c"), clock, is_strict=is_strict), clock


def test_the_last_one_may_be_too_many_and_the_next_has_to_wait() -> None:
    strict, clock = permits(is_strict=True)
    assert strict.take(10)
    assert strict.take(3)
    assert strict.wait_ms() == 0, "it was within, as far as it was asked"
    assert not strict.take(1)
    assert strict.wait_ms() == 2_000
    clock.advance(500)
    assert strict.wait_ms() == 1_500
    clock.advance(5_000)
    assert strict.wait_ms() == 0


def test_a_lenient_one_gives_all_of_it_and_names_the_wait() -> None:
    lenient, _ = permits(is_strict=False)
    assert lenient.take(11)
    assert lenient.wait_ms() == 0
    assert lenient.take(100)
    assert lenient.wait_ms() == 100_000


def test_the_settings_say_how_much_may_come_at_once() -> None:
    few, _ = permits(
        is_strict=True, controller_quota_window_num="2", controller_quota_window_size_seconds="3"
    )
    assert few.take(7)
    assert not few.take(1)
    assert few.wait_ms() == 1_000
