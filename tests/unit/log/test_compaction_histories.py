"""Compaction with transactions: every short life of a partition, and random longer ones."""

import logging
import os
import time
from itertools import chain

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.log.histories import (
    ABORT,
    COMMIT,
    CUT,
    DELETE,
    DELETE_IN_TXN,
    IN_TXN,
    LITTLE_MEMORY,
    PASS,
    QUIET,
    ROLL,
    WRITE,
    Event,
    Life,
    die,
    histories,
    live,
    told,
    with_a_pass,
)

SECONDS = float(os.environ.get("SECONDS") or 0)  # a bound on each whole page; 0: all of it


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def live_all(lives, limit_s=0.0, progress=lambda asked: None):
    """How many lives there were; a failure tells its history."""
    count, started = 0, time.monotonic()
    for asked, events in enumerate(lives):
        progress(asked)
        try:
            count += live(events)
        except Exception as problem:
            raise AssertionError(f"{told(events)}: {problem!r}") from problem
        if limit_s and time.monotonic() - started > limit_s:
            break
    return count


def page(events, keys, producers):
    """All histories of a size with a pass at each place; without one, those that are smaller."""
    found = histories(events, keys, producers)
    plain = histories(events - 1, keys, producers)
    return chain(plain, (each for one in found for each in with_a_pass(one)))


def test_no_short_history_breaks_a_promise():
    assert live_all(page(events=5, keys=2, producers=2)) > 2500


@pytest.mark.full
@pytest.mark.timeout(0)
def test_no_history_breaks_a_promise(capsys):
    started = time.monotonic()
    with capsys.disabled():
        count = live_all(page(events=7, keys=2, producers=2), SECONDS, told_now_and_then)
        took = time.monotonic() - started
        print(f"\n7 events, 2 keys, 2 producers: {count:,} histories ({took:.0f} s)")


def told_now_and_then(asked):
    if asked % 10_000 == 0:
        print(f"\r{asked:,} histories looked at", end="", flush=True)


# --- longer ones ----------------------------------------------------------------------------------

KEYS = st.integers(0, 3)
PRODUCERS = st.integers(0, 2)
EVENTS = st.one_of(
    st.builds(Event, st.sampled_from([WRITE, DELETE]), KEYS),
    st.builds(Event, st.sampled_from([IN_TXN, IN_TXN, DELETE_IN_TXN]), KEYS, PRODUCERS),
    st.builds(Event, st.sampled_from([COMMIT, ABORT]), st.just(0), PRODUCERS),
    st.builds(Event, st.sampled_from([COMMIT, ABORT]), st.just(0), PRODUCERS),
    st.just(Event(ROLL)),
    st.just(Event(PASS)),
    st.sampled_from([Event(PASS), Event(ROLL), Event(CUT), Event("restart")]),
)


@settings(
    max_examples=int(os.environ.get("EXAMPLES") or 150), deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
@given(st.lists(EVENTS, min_size=8, max_size=40), st.booleans())
def test_no_longer_history_breaks_a_promise(events, has_little_memory):
    life = Life(LITTLE_MEMORY if has_little_memory else QUIET)
    for event in events:
        if event.kind in (COMMIT, ABORT) and event.producer not in life.open:
            continue
        if event.kind == "restart":
            life.restart(clean=bool(len(life.written) % 2))
            life.check()
        elif event.kind == PASS:
            while life.run_pass():
                life.check()
        else:
            life.happen(event)
    die(life)
