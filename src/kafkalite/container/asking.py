"""Asks a broker who is in its cluster, without all that a client needs: what a health check may
cost is a few milliseconds, so nothing is imported here but sockets.

Metadata version 1 for no topic is all there is to it; every broker since Apache Kafka 0.10 answers.
"""

from __future__ import annotations

import socket
import struct

METADATA = 3
VERSION = 1
_QUESTION = struct.pack(">hhih9si", METADATA, VERSION, 0, 9, b"kafkalite", 0)
_REPLY_BYTES = 1 << 20


class NoAnswer(Exception):
    """There is no broker, or what answers is none."""


def count_brokers(host: str, port: int, timeout_s: float) -> int:
    """How many brokers the one at this address knows, itself among them; raises NoAnswer."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(struct.pack(">i", len(_QUESTION)) + _QUESTION)
            size = struct.unpack(">i", _read(connection, 4))[0]
            if not 8 <= size <= _REPLY_BYTES:
                raise NoAnswer(f"{host}:{port} answers, and is no broker of Kafka's")
            return int(struct.unpack_from(">ii", _read(connection, size))[1])
    except OSError as error:
        raise NoAnswer(f"{host}:{port} cannot be reached: {error}") from None


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise NoAnswer("the connection was closed before an answer came")
        data += piece
    return data
