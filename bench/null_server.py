"""Somebody to send load to who does next to nothing.

    python -m bench.null_server produce|floor|fetch TOPIC FRAME_BYTES RECORDS FILE  # prints a port

`produce` takes frames and acknowledges them unread: the ceiling of the load generator. `floor` also
computes each batch's CRC-32C and writes it to a file: what nobody who keeps the data can spare.
`fetch` sends a file piece by piece from memory, FRAME_BYTES of batches for each request. It serves
one connection at a time until it is killed.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from crc32c import crc32c

from kafkalite.protocol import codec
from kafkalite.protocol.messages import FetchResponse, ProduceResponse

PRODUCE_VERSION, FETCH_VERSION = 9, 12
FILE_BYTES = 256 * 1024 * 1024  # then from the start again, over a file emptied: pages are new
BUFFER_BYTES = 1 << 20
START_SECONDS = 20


class NullServer:
    """The server as the load sees it."""

    name = "null"
    host = "127.0.0.1"

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self.port = int(process.stdout.readline())

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


@contextmanager
def serving(
    mode: str, topic: str, frame_bytes: int, records: int, path: str
) -> Iterator[NullServer]:
    """A null server in a process of its own."""
    command = [sys.executable, "-m", "bench.null_server", mode, topic]
    command += [str(frame_bytes), str(records), path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield NullServer(process)
    finally:
        process.kill()
        process.wait(START_SECONDS)


# --- the process ----------------------------------------------------------------------------------


def main() -> None:
    mode, topic, frame_bytes, records, path = sys.argv[1:]
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    while True:
        connected, _ = listening.accept()
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if mode == "fetch":
                serve_fetch(connected, topic, int(frame_bytes), path)
            else:
                keep = Keeper(path).keep if mode == "floor" else None
                serve_produce(connected, topic, int(records), keep)
        except (ConnectionError, EOFError):
            pass
        connected.close()


class Keeper:
    """The least that keeping a batch costs."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        self._position = FILE_BYTES

    def keep(self, frame: memoryview) -> None:
        crc32c(frame)
        if self._position >= FILE_BYTES:
            os.ftruncate(self._file, 0)
            self._position = 0
        self._position += os.pwrite(self._file, frame, self._position)


def serve_produce(
    connected: socket.socket, topic: str, records: int, keep: Callable[[memoryview], None] | None
) -> None:
    reply, offset_at = _produce_reply(topic)
    head = bytearray(4)
    buffer = bytearray(BUFFER_BYTES)
    offset = 0
    while True:
        _receive(connected, memoryview(head))
        size = int.from_bytes(head, "big")
        if size > len(buffer):
            buffer = bytearray(size)
        frame = memoryview(buffer)[:size]
        _receive(connected, frame)
        if keep is not None:
            keep(frame)
        reply[4:8] = frame[4:8]
        struct.pack_into(">q", reply, offset_at, offset)
        offset += records
        connected.sendall(reply)


def serve_fetch(connected: socket.socket, topic: str, piece: int, path: str) -> None:
    data = memoryview(Path(path).read_bytes())
    head, tail = _fetch_reply(topic, piece)
    sizes = bytearray(4)
    pieces = len(data) // piece
    while True:
        _receive(connected, memoryview(sizes))
        request = bytearray(int.from_bytes(sizes, "big"))
        _receive(connected, memoryview(request))
        head[4:8] = request[4:8]
        number = int.from_bytes(request[4:8], "big")  # the load asks for its pieces in order
        position = number % pieces * piece
        send(connected, head, data[position : position + piece], tail)


def send(connected: socket.socket, *parts: bytes | bytearray | memoryview) -> None:
    """In one write: nobody who reads a file or sends in pieces can be faster."""
    sent = connected.sendmsg(parts)
    for part in parts:
        if sent < len(part):
            connected.sendall(memoryview(part)[sent:])
        sent = max(0, sent - len(part))


def _receive(connected: socket.socket, into: memoryview) -> None:
    filled = 0
    while filled < len(into):
        got = connected.recv_into(into[filled:])
        if not got:
            raise EOFError
        filled += got


def _produce_reply(topic: str) -> tuple[bytearray, int]:
    """The frame of an acknowledgement and where its offset lies."""
    mark = 0x0102030405060708
    partition = ProduceResponse.PartitionResponse(index=0, base_offset=mark)
    response = ProduceResponse.Response(name=topic, partition_responses=[partition])
    body = codec.encode(ProduceResponse(responses=[response]), PRODUCE_VERSION)
    frame = bytearray(struct.pack(">ii", 5 + len(body), 0) + b"\0" + body)
    return frame, frame.index(struct.pack(">q", mark))


def _fetch_reply(topic: str, piece: int) -> tuple[bytearray, bytes]:
    """What comes before and behind the records."""
    mark = b"records!" * (piece // 8 + 1)
    partition = FetchResponse.Partition(partition_index=0, records=mark[:piece])
    response = FetchResponse.Response(topic=topic, partitions=[partition])
    body = codec.encode(FetchResponse(responses=[response]), FETCH_VERSION)
    frame = struct.pack(">ii", 5 + len(body), 0) + b"\0" + body
    start = frame.index(mark[:piece])
    return bytearray(frame[:start]), frame[start + piece :]


if __name__ == "__main__":
    main()
