"""A document over HTTP: what comes, what is too much, too late, or elsewhere."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from urllib.parse import urlsplit

import pytest

from kafkalite.env.fetching import fetched

MOST = 1_000


class Asked(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            getattr(self, self.path.partition("?")[0][1:])()

    def log_message(self, *words: object) -> None: ...

    def _say(self, status: int, body: bytes = b"", **heads: str) -> None:
        self.send_response(status)
        for name, value in heads.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def good(self) -> None:
        self._say(200, b"[1]", Content_Length="3")

    def without_length(self) -> None:
        self._say(200, b"[1]")

    def query(self) -> None:
        self._say(200, self.path.encode())

    def here(self) -> None:
        self._say(302, Location="/good")

    def round(self) -> None:
        self._say(301, Location="/round")

    def file(self) -> None:
        self._say(302, Location="file:///etc/passwd")

    def nowhere(self) -> None:
        self._say(307)

    def missing(self) -> None:
        self._say(404, b"not here")

    def large(self) -> None:
        self._say(200, b"x" * (MOST + 1))

    def short(self) -> None:
        self._say(200, b"x", Content_Length="100")

    def hang(self) -> None:
        time.sleep(3)

    def drip(self) -> None:
        self._say(200, b"x")
        for _ in range(60):
            self.wfile.write(b"x")
            time.sleep(0.05)

    def drip_heads(self) -> None:
        for _ in range(60):
            self.wfile.write(b"H")
            self.wfile.flush()
            time.sleep(0.05)


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[[str], str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield lambda path: f"http://127.0.0.1:{server.server_port}/{path}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("path", ["good", "without_length", "here"])
def test_what_comes(server: Callable[[str], str], path: str) -> None:
    assert fetched(server(path), None, 5, MOST) == b"[1]"


def test_a_query_is_part_of_an_address(server: Callable[[str], str]) -> None:
    assert fetched(server("query?a=b"), None, 5, MOST) == b"/query?a=b"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("round", "elsewhere more than 5 times"), ("file", "another scheme"),
        ("nowhere", "elsewhere more than 5 times"),
        ("missing", "the answer is 404"), ("large", "more than 1000 bytes"),
        ("short", "cut off|IncompleteRead"),
    ],
)  # fmt: skip
def test_what_is_no_answer(server: Callable[[str], str], path: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        fetched(server(path), None, 5, MOST)


@pytest.mark.parametrize("path", ["hang", "drip", "drip_heads"])
def test_who_is_slow_is_cut_off(server: Callable[[str], str], path: str) -> None:
    began = time.monotonic()
    with pytest.raises((OSError, ValueError, HTTPException)) as refused:
        fetched(server(path), None, 0.3, MOST)
    assert time.monotonic() - began < 2, refused.value


def test_nobody_is_there() -> None:
    with pytest.raises(OSError):
        fetched("http://127.0.0.1:1/x", None, 1, MOST)


@pytest.mark.parametrize("path", ["missing", "large", "file", "drip"])
def test_nothing_is_left_open_behind_what_is_no_answer(
    server: Callable[[str], str], path: str
) -> None:
    """Not even for as long as somebody keeps what was raised."""
    with pytest.raises((OSError, ValueError)) as refused:
        fetched(server(path), None, 0.3, MOST)
    assert refused.value.__traceback__ is not None
    there = urlsplit(server("")).port
    sockets = [each for each in gc.get_objects() if isinstance(each, socket)]
    assert [each for each in sockets if each.fileno() >= 0 and _peer(each) == there] == []


def _peer(connected: socket) -> int | None:
    try:
        port: int = connected.getpeername()[1]
    except OSError:
        return None
    return port
