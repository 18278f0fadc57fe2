"""Pushed metrics go on to who is away a little later; what waits is bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kafkalite.config import InvalidSetting
from kafkalite.env.background import InlineBackground
from kafkalite.env.clock import ManualClock
from kafkalite.telemetry import forwarding as module
from kafkalite.telemetry.forwarding import AGAIN_MS, CONTENT_TYPE, Forwarding, check_url


class Collector:
    """Takes what it is given, with a status."""

    def __init__(self) -> None:
        self.status = 200
        self.given: list[tuple[str, str | None, bytes]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.given.append((self.path, self.headers["Content-Type"], body))
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.stop()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def make(clock: ManualClock, said: list[str]) -> Callable[[str], Forwarding]:
    return lambda url: Forwarding(
        url, clock, InlineBackground(), lambda kind, text: said.append(text)
    )


def test_what_is_pushed_goes_on(
    collector: Collector, make: Callable[[str], Forwarding], said: list[str]
) -> None:
    forwarding = make(collector.url)
    forwarding.send(b"one")
    forwarding.send(b"two")
    assert collector.given == [("/v1/metrics", CONTENT_TYPE, each) for each in (b"one", b"two")]
    assert (forwarding.sent, forwarding.dropped, said) == (2, 0, [])


def test_what_is_refused_for_good_is_dropped(
    collector: Collector, make: Callable[[str], Forwarding], said: list[str]
) -> None:
    collector.status = 400
    forwarding = make(collector.url)
    forwarding.send(b"one")
    collector.status = 200
    forwarding.send(b"two")
    assert (forwarding.sent, forwarding.dropped, len(collector.given)) == (1, 1, 2)
    assert said == [f"kafkalite.telemetry.url: {collector.url} refuses pushed metrics: the answer is 400"]  # noqa: E501


def test_who_is_busy_is_asked_again(
    collector: Collector, make: Callable[[str], Forwarding], clock: ManualClock
) -> None:
    collector.status = 503
    forwarding = make(collector.url)
    forwarding.send(b"one")
    forwarding.send(b"two")
    assert len(collector.given) == 1
    collector.status = 200
    clock.advance(AGAIN_MS)
    assert [body for *_, body in collector.given] == [b"one", b"one", b"two"]
    assert (forwarding.sent, forwarding.dropped) == (2, 0)


def test_who_is_away_is_asked_again_and_the_oldest_gives_way(
    make: Callable[[str], Forwarding], clock: ManualClock, said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "MOST_BYTES", 5)
    forwarding = make("http://127.0.0.1:1/v1/metrics")
    for data in (b"one", b"two", b"six"):
        forwarding.send(data)
    assert (forwarding.dropped, len(said)) == (2, 1)
    assert "Connection refused" in said[0]
    clock.advance(AGAIN_MS)
    assert len(said) == 2
    forwarding.stop()
    clock.advance(10 * AGAIN_MS)
    forwarding.send(b"late")
    assert len(said) == 2


@pytest.mark.parametrize(
    "url", ["host:4318", "ftp://host/", "http://", "http://h:99999/", "http://[", ""]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InvalidSetting, match="no address of HTTP"):
        check_url(url)
