"""Java's record classes as functions: builds, reads and converts with any kafka-clients."""

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from kafkalite.jvm import jars, java
from kafkalite.records.record import Record

SOURCE = Path(__file__).parent / "java" / "RecordsBridge.java"
STOP_TIMEOUT_S = 10


class JavaError(Exception):
    """What Java threw, as text."""


class RecordsBridge:
    """One JVM with one version of kafka-clients, asked over its standard input."""

    def __init__(self, classes: Path, version: str) -> None:
        class_path = f"{classes}:{jars.class_path(f'kafka-clients-{version}')}"
        self.version = version
        self._process = subprocess.Popen(
            java.command(class_path, "RecordsBridge"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def close(self) -> None:
        cast(IO[bytes], self._process.stdin).close()
        cast(IO[bytes], self._process.stdout).close()
        self._process.wait(STOP_TIMEOUT_S)

    def write(
        self,
        records: Sequence[Record],
        magic: int,
        codec: int,
        *,
        append_time: int | None = None,
        producer: tuple[int, int, int] = (-1, -1, -1),
        is_transactional: bool = False,
        leader_epoch: int = -1,
    ) -> bytes:
        request = bytearray(b"W")
        request += struct.pack(
            ">bb?qqqhi?ii",
            magic,
            codec,
            append_time is not None,
            -1 if append_time is None else append_time,
            records[0].offset,
            *producer,
            is_transactional,
            leader_epoch,
            len(records),
        )
        for record in records:
            request += struct.pack(">qq", record.offset, record.timestamp)
            request += _field(record.key) + _field(record.value)
            request += struct.pack(">i", len(record.headers))
            for key, value in record.headers:
                request += _field(key) + _field(value)
        return self._ask(request)

    def read(self, buffer: bytes) -> list[Record]:
        reply = _Reply(self._ask(b"R" + _field(buffer)))
        records = []
        while reply.position < len(reply.data):
            offset, timestamp = reply.unpack(">qq")
            key, value = reply.field(), reply.field()
            headers = tuple((reply.field() or b"", reply.field()) for _ in range(reply.count()))
            records.append(Record(offset, timestamp, key, value, headers))
        return records

    def down_convert(self, buffer: bytes, magic: int, offset: int) -> bytes:
        return self._ask(b"D" + struct.pack(">bq", magic, offset) + _field(buffer))

    def marker(self, is_commit: bool, coordinator_epoch: int, offset: int, timestamp: int) -> bytes:
        """The batch that ends a transaction of producer 7 in its epoch 3, in leader epoch 4."""
        request = (is_commit, coordinator_epoch, offset, timestamp, 4, 7, 3)
        return self._ask(b"M" + struct.pack(">?iqqiqh", *request))

    def _ask(self, request: bytes | bytearray) -> bytes:
        to_java, from_java = self._process.stdin, self._process.stdout
        assert to_java is not None
        assert from_java is not None
        to_java.write(request)
        to_java.flush()
        (length,) = struct.unpack(">i", from_java.read(4))
        if length >= 0:
            return from_java.read(length)
        (length,) = struct.unpack(">H", from_java.read(2))
        raise JavaError(from_java.read(length).decode())


class _Reply:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def unpack(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from(layout, self.data, self.position)
        self.position += struct.calcsize(layout)
        return values

    def count(self) -> int:
        return self.unpack(">i")[0]

    def field(self) -> bytes | None:
        length = self.count()
        if length < 0:
            return None
        self.position += length
        return self.data[self.position - length : self.position]


def _field(content: bytes | None) -> bytes:
    if content is None:
        return struct.pack(">i", -1)
    return struct.pack(">i", len(content)) + content
