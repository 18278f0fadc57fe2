"""A small document from an address of HTTP, read at one go, or handed over to one.

Owns the asking, which blocks and so is for a worker alone, and its bounds: in time, in bytes, in
how often it is sent elsewhere, and never to another scheme. Proxies of the environment are not
asked. Invariant: headers that somebody gave are said to whom they were meant for, and nobody else.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from socket import SHUT_RDWR, socket
from urllib.parse import urljoin, urlsplit

PIECE = 65_536
MOST_REDIRECTS = 5
OK, REDIRECTS = 200, (301, 302, 303, 307, 308)
_ACCEPTED = {"Accept": "application/json"}


def fetched(
    url: str, context: ssl.SSLContext | None, patience_s: float, most: int,
    headers: Mapping[str, str] = _ACCEPTED,
) -> bytes:  # fmt: skip
    """With a context by TLS. Raises OSError, HTTPException or ValueError."""
    until = time.monotonic() + patience_s
    for _ in range(1 + MOST_REDIRECTS):
        with _asked(url, context, until, headers=headers) as response:
            if response.status not in REDIRECTS:
                return _body(response, until, most)
            there = _elsewhere(url, response)
            if urlsplit(there).netloc != urlsplit(url).netloc:
                headers = _ACCEPTED
            url = there
    raise ValueError(f"it was sent elsewhere more than {MOST_REDIRECTS} times")


def posted(
    url: str, context: ssl.SSLContext | None, body: bytes, content_type: str, patience_s: float
) -> int:
    """The status of the answer. Raises as `fetched` does; follows nobody who sends it elsewhere."""
    until = time.monotonic() + patience_s
    with _asked(url, context, until, "POST", body, {"Content-Type": content_type}) as response:
        return response.status


@contextmanager
def _asked(
    url: str, context: ssl.SSLContext | None, until: float, method: str = "GET",
    body: bytes | None = None, headers: Mapping[str, str] = _ACCEPTED,
) -> Iterator[HTTPResponse]:  # fmt: skip
    """The answer of a server, which is cut off when its time is over."""
    parts, left_s = urlsplit(url), until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("it took too long")
    host = parts.hostname or ""
    if context is None:
        connection = HTTPConnection(host, parts.port, timeout=left_s)
    else:
        connection = HTTPSConnection(host, parts.port, timeout=left_s, context=context)
    connection.connect()
    watch = threading.Timer(until - time.monotonic(), _cut_off, (connection.sock,))
    watch.daemon = True
    watch.start()
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target, body, dict(headers))
        with connection.getresponse() as response:  # which has the socket where it is the last
            yield response
    finally:
        watch.cancel()
        connection.close()


def _cut_off(connected: socket) -> None:
    with suppress(OSError):
        connected.shutdown(SHUT_RDWR)


def _elsewhere(url: str, response: HTTPResponse) -> str:
    there = urljoin(url, response.getheader("Location") or "")
    if urlsplit(there).scheme != urlsplit(url).scheme.lower():
        raise ValueError("it was sent to an address of another scheme")
    return there


def _body(response: HTTPResponse, until: float, most: int) -> bytes:
    if response.status != OK:
        raise ValueError(f"the answer is {response.status}")
    found = b""
    while len(found) <= most and (piece := response.read1(PIECE)):
        found += piece
    if len(found) > most:
        raise ValueError(f"it has more than {most} bytes")
    if time.monotonic() >= until:
        raise TimeoutError("it took too long")
    if response.length:  # neither unknown nor nothing: it ended before what was announced
        raise ValueError("the answer was cut off")
    return found
