"""Whoever holds up an event loop is named; who waits or is idle is not, and costs nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import uvloop

from bench.raw_client import RawClient, frame_of
from kafkalite import handlers
from kafkalite.env import turns
from kafkalite.env.turns import LongTurn, run, watch
from kafkalite.handlers import api_versions
from kafkalite.protocol.messages import ApiVersionsRequest
from kafkalite.testing.embedded import EmbeddedKafka

NewLoop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = request.param()
    yield loop
    loop.close()


@pytest.fixture
def seen(every_turn_is_short: list[LongTurn]) -> list[LongTurn]:
    """What the watch noticed, and forgives."""
    noticed: list[LongTurn] = []
    watch.listeners[:] = [noticed.append]  # in place of those of every test
    return noticed


def run_for(loop: asyncio.AbstractEventLoop, seconds: float, job: Callable[[], None]) -> None:
    loop.call_later(0.01, job)
    loop.call_later(seconds, loop.stop)
    run(loop)


def compute() -> None:
    end_s = time.thread_time() + 0.4
    while time.thread_time() < end_s:
        sum(range(1000))


def sleep() -> None:
    time.sleep(0.4)


def test_who_computes_is_named(loop, seen) -> None:
    run_for(loop, 0.05, compute)
    (turn,) = seen
    assert turn.cpu_ms >= 250
    assert turn.wall_ms >= turn.cpu_ms - 5
    assert "compute" in turn.places[0]


def test_who_waits_is_named_and_seen_not_to_compute(loop, seen) -> None:
    run_for(loop, 0.05, sleep)
    (turn,) = seen
    assert turn.wall_ms >= 250
    assert turn.cpu_ms < 100
    assert "sleep" in turn.places[0]


def test_a_turn_in_which_nobody_waits_is_not_told(loop, seen, monkeypatch) -> None:
    monkeypatch.setitem(globals(), turns.ALONE, ("sleep",))
    run_for(loop, 0.05, sleep)
    assert not seen


def test_an_idle_loop_is_not_asked(loop, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(turns._Loop, "_ask", lambda *_: asked.append(1))
    run_for(loop, 0.5, lambda: None)
    assert len(asked) <= 2  # while it started


def test_many_short_turns_are_no_long_one(loop, seen) -> None:
    end_s = time.monotonic() + 0.4

    def short() -> None:
        if time.monotonic() < end_s:
            sum(range(1000))
            loop.call_soon(short)

    run_for(loop, 0.5, short)
    assert not [turn for turn in seen if turn.cpu_ms >= turns.LONG_MS]


def test_the_log_says_it_once_and_how_often_it_was(seen, caplog, monkeypatch) -> None:
    monkeypatch.setattr(watch, "_said_s", -turns.SAY_EVERY_S)
    monkeypatch.setattr(watch, "_unsaid", 0)
    turn = LongTurn(340, 310, "Metadata v12 of client 'me'", ("kafkalite.handlers.metadata:1 f",))
    before = watch.count
    for _ in range(3):
        watch._notice(turn)
    assert watch.count == before + 3
    (line,) = [each.getMessage() for each in caplog.records]
    assert line == (
        "nobody was served for 340 ms, 310 ms of it computing: Metadata v12 of client 'me', in "
        "kafkalite.handlers.metadata:1 f"
    )
    monkeypatch.setattr(watch, "_said_s", -turns.SAY_EVERY_S)
    watch._notice(turn)
    assert caplog.records[-1].getMessage().endswith("(2 more since the last such line)")


def watchers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "kafkalite-turns"]


def test_one_thread_watches_all_loops_and_ends_with_the_last() -> None:
    with EmbeddedKafka(), EmbeddedKafka():
        assert len(watchers()) == 1
    assert not watchers()
    for _ in range(10):
        with EmbeddedKafka():
            pass
    assert not watchers()


@pytest.mark.pure  # it takes the place of something compiled
def test_the_request_that_held_up_the_loop_is_told(seen, monkeypatch) -> None:
    answer = api_versions.api_versions

    def slow(context, call, request):
        compute()
        return answer(context, call, request)

    monkeypatch.setattr(api_versions, "api_versions", slow)
    handlers.handler.cache_clear()
    try:
        with EmbeddedKafka() as kafka:
            client = RawClient("127.0.0.1", kafka.port)
            request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            client.send(frame_of(request, 3, 1))
            client.receive()
            client.close()
    finally:
        handlers.handler.cache_clear()
    assert any("ApiVersions v3 of client" in turn.doing for turn in seen), seen
