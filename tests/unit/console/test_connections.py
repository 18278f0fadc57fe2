"""Connections of browsers that send nothing, or read nothing: they keep no place."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kafkalite.console import connections
from kafkalite.console.server import serve, server_of

LOOK_SECONDS = 0.5
LARGE = 64 << 20


async def large(_: Request) -> Response:
    return Response(b"x" * LARGE)


async def posted(request: Request) -> Response:
    return Response(await request.body())


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "LOOK_SECONDS", LOOK_SECONDS)
    routes = [Route("/large", large), Route("/", posted, methods=["POST"])]
    listener = socket.create_server(("127.0.0.1", 0))
    server = server_of(Starlette(routes=routes))
    thread = threading.Thread(target=serve, args=(server, listener))
    thread.start()
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join(10)
    listener.close()
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nhost: x\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf",
    ],
)
def test_a_request_that_does_not_come_whole(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), 20) as peer:
        peer.sendall(sent)
        assert ends(peer)


def ends(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("requests", [1, 2], ids=["one", "another-behind-it"])
def test_an_answer_that_nobody_reads(port: int, requests: int) -> None:
    with closing(socket.socket()) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", port))
        peer.settimeout(20)
        peer.sendall(requests * b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(4 * LOOK_SECONDS)
        read = 0
        try:
            while data := peer.recv(1 << 20):
                read += len(data)
        except ConnectionResetError:
            pass
        assert read < LARGE


def test_an_answer_that_is_read_slowly_comes_whole(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 20) as peer:
        peer.sendall(b"GET /large HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        read = 0
        for _ in range(8):
            time.sleep(LOOK_SECONDS / 2)
            read += sum(len(peer.recv(1 << 20)) for _ in range(8))
        while data := peer.recv(1 << 20):
            read += len(data)
        assert read > LARGE
