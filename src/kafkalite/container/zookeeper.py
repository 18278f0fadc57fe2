"""A place where ZooKeeper used to be: listens on clientPort and answers its four-letter words, for
harnesses that start one and wait for its port. Nothing is kept, and no session is opened.
"""

from __future__ import annotations

import selectors
import socket
import sys

PORT = 2181
WORD_BYTES = 4
MOST_BYTES = 64  # what is left unread when a connection is closed takes the answer with it
BACKLOG = 128
MOST = 256  # of those who say nothing; the oldest of them goes when another one comes
# What is said, and the answer.
ANSWERS = {b"ruok": b"imok", b"srvr": b"Mode: standalone\n", b"stat": b"Mode: standalone\n"}


def main(arguments: list[str]) -> None:
    """The program: a zookeeper.properties as argument; ends with the signal that ends it."""
    with open(arguments[0], encoding="utf-8") as file:
        host, port = address(file.read())
    with socket.create_server((host, port), backlog=BACKLOG) as server:
        print(f"binding to port {host or '0.0.0.0'}/{server.getsockname()[1]}", flush=True)
        serve(server)


def address(properties: str) -> tuple[str, int]:
    """clientPortAddress and clientPort of a file."""
    pairs = (line.partition("=") for line in properties.splitlines())
    found = {key.strip(): value.strip() for key, _, value in pairs}
    return found.get("clientPortAddress", ""), int(found.get("clientPort") or PORT)


def serve(server: socket.socket) -> None:
    """One word from each that comes; who says nothing holds nobody up."""
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        silent: dict[socket.socket, None] = {}
        while True:
            for key, _ in selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                if ready is server:
                    _let_in(server, silent, selector)
                elif ready in silent:
                    del silent[ready]
                    selector.unregister(ready)
                    _answer(ready)


def _let_in(
    server: socket.socket, silent: dict[socket.socket, None], selector: selectors.BaseSelector
) -> None:
    try:
        connection, _ = server.accept()
    except OSError:
        return  # it has gone
    if len(silent) == MOST:
        oldest = next(iter(silent))
        del silent[oldest]
        selector.unregister(oldest)
        oldest.close()
    silent[connection] = None
    selector.register(connection, selectors.EVENT_READ)


def _answer(connection: socket.socket) -> None:
    with connection:
        try:
            word = connection.recv(MOST_BYTES)[:WORD_BYTES]
            connection.sendall(ANSWERS.get(word, b""))
        except OSError:
            return  # it has gone


if __name__ == "__main__":
    main(sys.argv[1:])
