"""Ways to send a part of a file over a socket, measured. `python -m bench.sending`

A bare server and its client, five requests in flight: processor time of either for one part, the
least of some rounds. The parts begin anywhere in a page, as batches do in a log. What comes of it
decides where `sendfile` begins in env/sockets.py.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from bench.null_server import send

ROOT = Path(__file__).parents[1]
SIZES = {"16 KB": 1 << 14, "64 KB": 1 << 16, "128 KB": 1 << 17, "256 KB": 1 << 18, "1 MB": 1 << 20}
FILE_BYTES = 32 << 20
HEAD, TAIL = bytes(70), bytes(3)  # what goes around the records in a reply
REQUEST = bytes(16)
IN_FLIGHT = 5
SECONDS, ROUNDS = 0.6, 5


def read(connected: socket.socket, file: int, position: int, size: int) -> None:
    send(connected, HEAD, os.pread(file, size, position), TAIL)


_ONE_BUFFER = memoryview(bytearray(max(SIZES.values())))


def one_buffer(connected: socket.socket, file: int, position: int, size: int) -> None:
    into = _ONE_BUFFER[:size]
    os.preadv(file, [into], position)
    send(connected, HEAD, into, TAIL)


def sendfile(connected: socket.socket, file: int, position: int, size: int) -> None:
    connected.sendall(HEAD, socket.MSG_MORE)
    end = position + size
    while position < end:
        position += os.sendfile(connected.fileno(), file, position, end - position)
    connected.sendall(TAIL)


Way = Callable[[socket.socket, int, int, int], None]
WAYS: dict[str, tuple[Way, str]] = {
    "read": (read, "read and one gather write"),
    "one_buffer": (one_buffer, "the same into one buffer for ever"),
    "sendfile": (sendfile, "`sendfile`"),
}


def serve(way: str, size: int, path: str) -> None:
    """One connection: a part for each request, in turns."""
    send_part, _ = WAYS[way]
    step = size + len(HEAD) + len(TAIL)  # so that parts begin anywhere in a page
    parts = FILE_BYTES // step
    with open(path, "rb") as file, socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        connected, _ = listening.accept()
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asked = number = 0
        with suppress(ConnectionError):  # the client leaves when it has seen enough
            while received := connected.recv(1 << 16):
                asked += len(received)
                while number < asked // len(REQUEST):
                    send_part(connected, file.fileno(), number % parts * step, size)
                    number += 1


def measure(way: str, size: int, path: str) -> tuple[float, float]:
    """Microseconds of the server's processor and of the client's for one part."""
    call = [sys.executable, "-m", "bench.sending", "--serve", way, str(size), path]
    with subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        with socket.create_connection(("127.0.0.1", int(server.stdout.readline()))) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            mine, count = _take(client, size, SECONDS)
            times = psutil.Process(server.pid).cpu_times()  # it ends when the client does
    return (times.user + times.system) / count * 1e6, mine / count * 1e6


def _take(client: socket.socket, size: int, seconds: float) -> tuple[float, int]:
    """Seconds of this process, and how many parts came."""
    reply = size + len(HEAD) + len(TAIL)
    into = memoryview(bytearray(1 << 20))
    client.sendall(REQUEST * IN_FLIGHT)
    received = answered = 0
    started, before = time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        received += client.recv_into(into)
        while answered < received // reply:
            client.sendall(REQUEST)
            answered += 1
    return time.process_time() - before, max(answered, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Ways to send a part of a file.")
    parser.add_argument("--serve", nargs=3, metavar=("WAY", "SIZE", "PATH"))
    arguments = parser.parse_args()
    if arguments.serve:
        way, size, path = arguments.serve
        serve(way, int(size), path)
        return
    with tempfile.NamedTemporaryFile(prefix="kafkalite-bench-") as file:
        file.write(os.urandom(FILE_BYTES))
        file.flush()
        print("| bytes | " + " | ".join(title for _, title in WAYS.values()) + " |")
        print("| --- |" + " ---: |" * len(WAYS))
        for name, size in SIZES.items():
            cells = []
            for way in WAYS:
                found = [measure(way, size, file.name) for _ in range(ROUNDS)]
                cells.append(" + ".join(f"{min(each):.0f}" for each in zip(*found, strict=True)))
            print(f"| {name} | " + " | ".join(f"{cell} µs" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
