"""Rates over samples, and buckets of tokens: the figures are those of Apache Kafka's classes."""

from __future__ import annotations

import pytest

from kafkalite.quotas.rates import LONGEST_MS, Rate, TokenBucket, Window

WINDOW = Window(11, 1_000)


def rate(limit: float, window: Window = WINDOW) -> Rate:
    made = Rate(window)
    made.limit = limit
    return made


def bucket(limit: float) -> TokenBucket:
    made = TokenBucket(WINDOW)
    made.limit = limit
    return made


def test_a_first_burst_is_reckoned_over_all_samples_but_one() -> None:
    one = rate(1_000)
    one.record(0, 10_000)
    assert one.wait_ms(0) == 0
    one.record(0, 1)
    assert one.wait_ms(0) == 1
    one.record(0, 9_999)
    assert one.wait_ms(0) == 10_000, "twice as much as ten seconds allow"


def test_one_batch_beyond_a_whole_window_waits_until_its_average_is_the_limit() -> None:
    one = rate(1_024)
    one.record(5_000, 1_048_576)
    assert one.wait_ms(5_000) == 1_014_000
    one.record(5_000 + 1_014_000, 1)
    assert one.wait_ms(5_000 + 1_014_000) == 0


def test_time_that_passes_lowers_a_rate_and_samples_leave_it_as_a_whole() -> None:
    one = rate(100)
    for second in range(11):
        one.record(second * 1_000, 100)
    assert one.wait_ms(10_000) == 1_000, "eleven hundred in ten seconds"
    one.record(11_500, 0)
    assert one.wait_ms(11_500) == 0
    one.record(11_500, 400)
    assert one.wait_ms(11_500) == 3_500, "fourteen hundred in ten seconds and a half"


def test_what_is_taken_back_never_was() -> None:
    one = rate(10)
    one.record(0, 50)
    one.record(1, 1_000)
    assert one.wait_ms(1) > 0
    one.record(1, -1_000)
    assert one.wait_ms(1) == 0


@pytest.mark.parametrize("window", [Window(1, 1_000), Window(2, 5_000)])
def test_other_windows(window: Window) -> None:
    one = rate(10, window)
    one.record(0, 10 * (window.samples - 1) * window.sample_ms // 1_000)
    assert one.wait_ms(0) == 0
    assert not one.is_idle(window.duration_ms - 1)
    assert one.is_idle(window.duration_ms)


def test_a_wait_can_be_told() -> None:
    one = rate(0.000_001)
    one.record(0, 1e12)
    assert one.wait_ms(0) == LONGEST_MS
    none = rate(0)
    none.record(0, 1)
    assert none.wait_ms(0) == LONGEST_MS
    no_number = rate(float("nan"))
    no_number.record(0, 1e12)
    assert no_number.wait_ms(0) == 0


def test_a_bucket_is_full_at_first_and_fills_at_its_limit() -> None:
    one = bucket(2)
    one.record(0, 22)
    assert one.tokens(0) == 0
    assert one.wait_ms(0) == 0
    one.record(0, 3)
    assert one.wait_ms(0) == 1_500
    assert one.wait_ms(500) == 1_000
    assert one.tokens(60_000) == 22
    assert not one.is_idle(3_659_999)
    assert one.is_idle(3_660_000)


def test_a_bucket_is_filled_at_the_limit_of_the_moment_in_which_it_is_looked_at() -> None:
    one = bucket(100)
    one.record(0, 1_110)
    one.limit = 1
    assert one.wait_ms(5_000) == 5_000


def test_a_burst_costs_a_bucket_no_more_than_itself() -> None:
    """The example of KIP-599: 560 at 5 per second, with room for 500."""
    one = TokenBucket(Window(100, 1_000))
    one.limit = 5
    one.record(0, 560)
    assert one.wait_ms(0) == 12_000
