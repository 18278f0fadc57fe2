"""Records for the page: some now, and where to go on; nothing is kept between two questions.

Owns how much one question reads, looks at and tells, however much there is: who follows a topic
asks again and again, from where the last answer ended, so that a slow reader costs nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.client.consuming import EARLIEST, LATEST, Reader, Start
from kafkalite.console.decoding import AUTO, FORMATS, Decoder, Shown
from kafkalite.console.filters import Texts, Wanted, wanted_of
from kafkalite.console.given import Given, Mistake
from kafkalite.console.schemas import MOST_PARSED, Schemas
from kafkalite.protocol.errors import Error
from kafkalite.records.record import Record

MOST_RECORDS = 500
MOST_LOOKED_AT = 50_000
MOST_BYTES = 64 << 20
MOST_SECONDS = 2.0
WAIT_MS = 400
PATIENCE_SECONDS = 5.0
LIST_CHARACTERS = 1_000
WHOLE_CHARACTERS = 200_000
HEADERS, HEADER_CHARACTERS = 50, 300
BEGINNINGS = ("beginning", "end", "last", "offset", "time")
MOST_LAST = 5_000  # of all partitions together
MOST_TOLD = 4 << 20  # characters of an answer, about


@dataclass(slots=True)
class _Looking:
    """One question, on its way."""

    positions: dict[int, int]
    limit: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    looked_at: int = 0
    size: int = 0
    told: int = 0
    seconds: float = 0.0  # that reading what there is has taken
    notes: list[str] = field(default_factory=list)

    @property
    def is_enough(self) -> bool:
        return (
            len(self.rows) >= self.limit
            or self.looked_at >= MOST_LOOKED_AT
            or self.size >= MOST_BYTES
            or self.told >= MOST_TOLD
            or self.seconds >= MOST_SECONDS
        )


def records(cluster: Cluster, given: Given, schemas: Schemas | None) -> dict[str, Any]:
    """Those behind a beginning, or behind where an answer ended (`positions`). `follow`: also
    waits a moment for one that comes."""
    topic, follows = given.name("topic"), given.flag("follow")
    decoder, wanted = _decoder(topic, given, schemas), wanted_of(given.text("filter", ""))
    notes: list[str] = []
    reader = _reader(cluster, given, notes)
    ends = reader.ends
    looking = _Looking(reader.beginnings, given.number("limit", 50, 1, MOST_RECORDS), notes=notes)
    deadline_s = time.monotonic() + MOST_SECONDS
    while not looking.is_enough and time.monotonic() < deadline_s:
        if not follows and _is_done(looking, ends):
            break
        _look(reader, looking, decoder, wanted)
        if follows and looking.rows:
            break
    return {
        "rows": looking.rows, "positions": looking.positions, "ends": ends,
        "looked_at": looking.looked_at, "done": _is_done(looking, ends), "notes": notes,
    }  # fmt: skip


def _look(reader: Reader, looking: _Looking, decoder: Decoder, wanted: Wanted | None) -> None:
    """One round, or as much of it as is enough."""
    partial: dict[int, int] = {}
    for index, record, _ in reader.round():
        partial[index] = record.offset + 1
        looking.looked_at += 1
        looking.size += _size(record)
        began_s = time.monotonic()
        row = _row(index, record, decoder, wanted)
        looking.seconds += time.monotonic() - began_s
        if row is not None:
            looking.rows.append(row)
            looking.told += len(str(row))
        if looking.is_enough:
            looking.positions = reader.beginnings | partial
            return
    looking.positions = reader.beginnings


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _is_done(looking: _Looking, ends: dict[int, int]) -> bool:
    return all(looking.positions[index] >= end for index, end in ends.items())


def _reader(cluster: Cluster, given: Given, notes: list[str]) -> Reader:
    positions, partitions = given.places("positions"), given.numbers("partitions")
    start = Start() if positions else _start(cluster, given, partitions)
    reader = Reader(
        cluster, given.name("topic"), partitions=partitions or sorted(positions), start=start,
        follows=True, is_committed=given.choice("isolation", ("committed", "all"), "committed")
        == "committed", timeout_s=PATIENCE_SECONDS, tell=notes.append, max_wait_ms=WAIT_MS,
    )  # fmt: skip
    there = reader.beginnings
    for index, offset in positions.items():
        if index in there:
            reader.seek(index, offset)
    return reader


def _start(cluster: Cluster, given: Given, partitions: list[int]) -> Start:
    begin = given.choice("begin", BEGINNINGS, "last")
    if begin == "beginning":
        return Start(timestamp=EARLIEST)
    if begin == "end":
        return Start(timestamp=LATEST)
    if begin == "offset":
        return Start(offset=given.number("offset"))
    if begin == "time":
        return Start(timestamp=given.number("time"))
    count = len(partitions) or len(cluster.topic(given.name("topic"), may_create=False).leaders)
    return Start(offset=-max(1, min(given.number("limit", 50, 1, MOST_RECORDS),
                                    MOST_LAST // max(count, 1))))  # fmt: skip


def _decoder(topic: str, given: Given, schemas: Schemas | None) -> Decoder:
    return Decoder(
        topic, given.choice("key_format", FORMATS, AUTO),
        given.choice("value_format", FORMATS, AUTO), schemas,
    )  # fmt: skip


def _row(
    index: int, record: Record, decoder: Decoder, wanted: Wanted | None
) -> dict[str, Any] | None:
    if wanted is not None and not wanted(_texts(record, decoder)):
        return None
    return _told(index, record, decoder, LIST_CHARACTERS)


def _texts(record: Record, decoder: Decoder) -> Texts:
    key, value = decoder.key_and_value(record, MOST_PARSED)
    headers = "\n".join(
        f"{_read(name)}={_read(each or b'')}" for name, each in record.headers
    )
    return Texts(_text(key), _text(value), headers)


def _read(data: bytes) -> str:
    return data.decode(errors="replace")


def _text(shown: Shown | None) -> str:
    return "" if shown is None else shown.text


def _told(index: int, record: Record, decoder: Decoder, most: int) -> dict[str, Any]:
    key, value = decoder.key_and_value(record, most)
    headers = record.headers
    return {
        "partition": index, "offset": record.offset, "timestamp": record.timestamp,
        "key": None if key is None else key.told(),
        "value": None if value is None else value.told(),
        "headers": [
            [_read(name[:HEADER_CHARACTERS]), _header(decoder, each)]
            for name, each in headers[:HEADERS]
        ],
        "header_count": len(headers),
    }  # fmt: skip


def _header(decoder: Decoder, value: bytes | None) -> dict[str, Any] | None:
    shown = decoder.show(value, AUTO, HEADER_CHARACTERS)
    return None if shown is None else shown.told()


def record(cluster: Cluster, given: Given, schemas: Schemas | None) -> dict[str, Any]:
    """One, with as much of its text as a page can bear."""
    topic, index = given.name("topic"), given.number("partition", high=(1 << 31) - 1)
    offset = given.number("offset")
    decoder = _decoder(topic, given, schemas)
    reader = Reader(
        cluster, topic, partitions=[index], start=Start(offset=offset), follows=True,
        is_committed=False, timeout_s=PATIENCE_SECONDS, tell=lambda _: None, max_wait_ms=WAIT_MS,
    )  # fmt: skip
    if offset >= reader.ends[index]:
        raise Mistake(f"{topic}-{index} ends at {reader.ends[index]}: nothing is at {offset}")
    for _, found, _ in reader.round():
        if found.offset == offset:
            return _told(index, found, decoder, WHOLE_CHARACTERS)
        if found.offset > offset:
            break
    raise ClientFailed(
        f"no record is at offset {offset} of {topic}-{index}: it was deleted, compacted away, or "
        "is a marker of a transaction", Error.OFFSET_OUT_OF_RANGE,
    )  # fmt: skip
