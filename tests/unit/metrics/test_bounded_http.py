"""Who connects and never finishes a request, or never reads its answer, is cut off."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from kafkalite.metrics import bounded_http
from kafkalite.metrics.bounded_http import server_of

PATIENCE_S, MOST = 0.3, 3
LONG = b"x" * 20_000_000  # more than the system takes for a peer that does not read
WAIT_S = 10


class Served:
    def __init__(self) -> None:
        routes = [
            Route("/", lambda _: Response(b"ok")), Route("/long", lambda _: Response(LONG))
        ]  # fmt: skip
        self.server: uvicorn.Server = server_of(Starlette(routes=routes))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True
        )
        self.thread.start()
        self.clients: list[socket.socket] = []
        self.until(lambda: self.server.started)

    def connect(self, words: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.listener.getsockname(), WAIT_S)
        client.settimeout(WAIT_S)
        self.clients.append(client)
        client.sendall(words)
        return client

    def get(self) -> bytes:
        client = self.connect(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        found = b""
        while piece := client.recv(65_536):
            found += piece
        return found

    @property
    def open(self) -> int:
        return len(self.server.server_state.connections)

    def until(self, is_so: Callable[[], bool]) -> None:
        end_s = time.monotonic() + WAIT_S
        while not is_so():
            assert time.monotonic() < end_s
            time.sleep(0.01)

    def stop(self) -> None:
        for client in self.clients:
            client.close()
        self.server.should_exit = True
        self.thread.join(WAIT_S)
        self.listener.close()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(bounded_http, "PATIENCE_S", PATIENCE_S)
    monkeypatch.setattr(bounded_http, "MOST_CONNECTIONS", MOST)
    served = Served()
    yield served
    served.stop()


@pytest.mark.parametrize(
    "words",
    [
        b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: h\r\n",
        b"GET /long HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
    ids=["nothing", "half a line", "half a request", "never reads"],
)  # fmt: skip
def test_who_does_not_go_on_is_cut_off(served: Served, words: bytes) -> None:
    served.connect(words)
    served.until(lambda: served.open == 1)
    served.until(lambda: served.open == 0)
    assert served.get().endswith(b"ok")


def test_who_asks_again_and_again_is_not(served: Served) -> None:
    client = served.connect()
    for _ in range(5):
        client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        found = b""
        while not found.endswith(b"ok"):
            found += client.recv(65_536)
        time.sleep(PATIENCE_S / 2)
    assert served.open == 1


def test_of_too_many_the_oldest_gives_way(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_http, "PATIENCE_S", 100.0)
    stuck = []
    for number in range(MOST):
        stuck.append(served.connect(b"GET /"))
        served.until(lambda wanted=number + 1: served.open == wanted)  # type: ignore[misc]
    assert served.get().endswith(b"ok")
    with suppress(ConnectionResetError):
        assert stuck[0].recv(1) == b""
    assert served.open == MOST - 1
