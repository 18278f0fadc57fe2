"""What the files beside a log's records are to be: their sizes and checksums, in a file of our own.

Apache Kafka's indexes, epochs and snapshots' names have no checksums: a short time index or a
transaction index that lost its entries looks as good as a whole one. So one more file lies beside
them, which Apache Kafka passes over. It is rewritten at a clean stop, and a line is added for each
segment that is completed and for each snapshot. Owns its format and what follows from it. It never
reads a record. Invariant: a file that is not what its seal says is never believed, and where the
seals themselves are damaged, none is.

Where there are no seals (Apache Kafka wrote the directory, or an older kafkalite) the files are
taken as Apache Kafka takes them. The same where it wrote something and stopped cleanly meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.disk import Disk, read_whole, replace_file
from kafkalite.log.names import parse_uuid, uuid_text
from kafkalite.log.segment import Segment, SegmentSeal
from kafkalite.log.snapshots import snapshot_path
from kafkalite.records.checksum import crc32c

SEALS = "derived-file-checksums"
_CRC_DIGITS = 8
_UNKNOWN_SIZE = -1


class Closed(NamedTuple):
    """Where a log began and ended at its last clean stop."""

    start_offset: int
    end_offset: int


@dataclass(slots=True)
class Seals:
    """All that is sealed of one log."""

    topic: str
    partition: int
    topic_id: bytes
    is_complete: bool = True  # whether everything that is not sealed is new, or was damaged
    segments: dict[int, SegmentSeal] = field(default_factory=dict)  # as the file says at the start
    next_offsets: dict[int, int] = field(default_factory=dict)  # where the segment behind begins
    snapshots: dict[int, tuple[int, int]] = field(default_factory=dict)  # size and checksum
    epochs: list[tuple[int, int]] | None = None
    closed: Closed | None = None  # while nothing was written since
    size: int = _UNKNOWN_SIZE  # of the file; not there yet, or damaged
    has_new_lines: bool = False  # which are not synced

    @property
    def is_damaged(self) -> bool:
        """As it was read."""
        return self.size < 0

    def is_next(self, segment: Segment, base_offset: int) -> bool:
        """Whether a segment is as it was sealed, and the one behind it begins at an offset."""
        seal = self.segments.get(segment.base_offset)
        is_same = seal is not None and seal.log_size == segment.size
        return is_same and self.next_offsets.get(segment.base_offset) == base_offset

    # --- what is written --------------------------------------------------------------------------

    def add_segment(self, disk: Disk, directory: str, segment: Segment, next_offset: int) -> None:
        """A segment is complete, and the one behind it begins at an offset."""
        segment.seal = segment.sealed()
        base_offset = segment.base_offset
        lines = [_segment_line(base_offset, segment.seal), f"next {base_offset} {next_offset}"]
        self._append(disk, directory, lines)

    def add_snapshot(self, disk: Disk, directory: str, offset: int) -> None:
        self.snapshots[offset] = checksum_of(disk, snapshot_path(directory, offset))
        self._append(disk, directory, [_snapshot_line(offset, *self.snapshots[offset])])

    def add_epochs(self, disk: Disk, directory: str, epochs: list[tuple[int, int]]) -> None:
        self.epochs = epochs
        self._append(disk, directory, [_epochs_line(epochs)])

    def cut(self, disk: Disk, directory: str, offset: int) -> bool:
        """The log is about to be cut at an offset, and nothing that was sealed behind it counts any
        more, nor where the log was closed; True when that is written, and has to be synced."""
        if is_written := self.size >= 0:
            self._write(disk, directory, [f"cut {offset}"])
        self.forget_behind(offset)
        return is_written

    def forget_behind(self, offset: int) -> None:
        """What lies whole below a cut is as it was sealed; the epochs are until they are saved."""
        self.closed = None
        kept = [base for base, following in self.next_offsets.items() if following <= offset]
        self.segments = {base: self.segments[base] for base in kept if base in self.segments}
        self.next_offsets = {base: self.next_offsets[base] for base in kept}
        self.snapshots = {at: each for at, each in self.snapshots.items() if at <= offset}

    def _append(self, disk: Disk, directory: str, lines: list[str]) -> None:
        """What cannot be written is not sealed, and does not keep anybody from going on."""
        with suppress(OSError):
            self._write(disk, directory, lines)
        self.closed = None

    def _write(self, disk: Disk, directory: str, lines: list[str]) -> None:
        path, size = f"{directory}/{SEALS}", max(self.size, 0)
        data = _text([self._head(0), *lines] if self.size < 0 else lines)
        file = disk.create(path) if self.size < 0 else disk.open(path)
        try:
            file.write_at(size, data)
            self.size, self.has_new_lines = size + len(data), True
        finally:
            file.close()

    def _head(self, count: int) -> str:
        extent = "all" if self.is_complete else "some"
        return f"log {self.topic} {self.partition} {uuid_text(self.topic_id)} {extent} {count}"

    def write_closed(
        self,
        disk: Disk,
        directory: str,
        segments: Sequence[Segment],
        snapshot_offsets: Iterable[int],
        epochs: list[tuple[int, int]],
        closed: Closed,
    ) -> None:
        """Replaces the file by what a clean stop leaves."""
        self.is_complete = True
        for one in segments:
            one.seal = one.seal or one.sealed()
        self.snapshots = {
            offset: self.snapshots.get(offset)
            or checksum_of(disk, snapshot_path(directory, offset))
            for offset in snapshot_offsets
        }
        self.epochs, self.closed = epochs, closed
        lines = [_segment_line(one.base_offset, one.seal) for one in segments if one.seal]
        pairs = pairwise([*(one.base_offset for one in segments), closed.end_offset])
        lines += [f"next {base_offset} {next_offset}" for base_offset, next_offset in pairs]
        lines += [_snapshot_line(offset, *each) for offset, each in self.snapshots.items()]
        lines += [_epochs_line(epochs), f"closed {closed.start_offset} {closed.end_offset}"]
        data = _text([self._head(len(lines)), *lines])
        replace_file(disk, f"{directory}/{SEALS}", data, is_synced=False)
        self.size = len(data)


def read_seals(
    disk: Disk, directory: str, topic: str, partition: int, *, is_clean: bool
) -> Seals | None:
    """What is sealed of a log; None when nothing ever was. Where the file is damaged, that is
    everything there is, and nothing is sealed."""
    path = f"{directory}/{SEALS}"
    if not disk.exists(path):
        return None
    data = read_whole(disk, path)
    try:
        return _parsed(data, topic, partition, is_clean)
    except (ValueError, IndexError, UnicodeDecodeError):
        return Seals(topic, partition, b"")


def _parsed(data: bytes, topic: str, partition: int, is_clean: bool) -> Seals:
    rows = data.decode("ascii").split("\n")
    head = _checked(rows[0])
    if head[:3] != ["log", topic, str(partition)]:
        raise ValueError("of another log")
    count = int(head[5])
    if len(rows) <= count + 1:
        raise ValueError("cut")
    seals = Seals(topic, partition, parse_uuid(head[3]), head[4] == "all")
    position = len(rows[0]) + 1
    for number, row in enumerate(rows[1:-1], 1):
        try:
            _take(seals, _checked(row))
        except (ValueError, IndexError):
            if is_clean or number <= count or number < len(rows) - 2:
                raise
            break  # torn by the crash
        position += len(row) + 1
    if is_clean and rows[-1]:
        raise ValueError("torn")
    seals.size = position
    return seals


def _checked(row: str) -> list[str]:
    """The words of a line whose checksum is right."""
    rest = row[_CRC_DIGITS + 1 :]
    if row[: _CRC_DIGITS + 1] != f"{crc32c(rest.encode('ascii')):08x} ":
        raise ValueError("a wrong checksum")
    return rest.split(" ")


def _take(seals: Seals, words: list[str]) -> None:
    kind, *fields = words
    seals.closed = None
    if kind == "epochs":
        pairs = [field.split(":") for field in fields if field]
        seals.epochs = [(int(epoch), int(start)) for epoch, start in pairs]
        return
    numbers = [int(field) for field in fields]
    if kind == "segment":
        seals.segments[numbers[0]] = SegmentSeal(*numbers[1:])
    elif kind == "next":
        seals.next_offsets[numbers[0]] = numbers[1]
    elif kind == "snapshot":
        seals.snapshots[numbers[0]] = (numbers[1], numbers[2])
    elif kind == "cut":
        seals.forget_behind(numbers[0])
    elif kind == "closed":
        seals.closed = Closed(*numbers)


def checksum_of(disk: Disk, path: str) -> tuple[int, int]:
    """Size and checksum of a small file; of one that is not there, those of nothing."""
    data = read_whole(disk, path) if disk.exists(path) else b""
    return len(data), crc32c(data)


def _text(lines: list[str]) -> bytes:
    encoded = [line.encode("ascii") for line in lines]
    return b"".join(b"%08x %s\n" % (crc32c(line), line) for line in encoded)


def _segment_line(base_offset: int, seal: SegmentSeal) -> str:
    return " ".join(["segment", str(base_offset), *map(str, seal)])


def _snapshot_line(offset: int, size: int, checksum: int) -> str:
    return f"snapshot {offset} {size} {checksum}"


def _epochs_line(epochs: list[tuple[int, int]]) -> str:
    return " ".join(["epochs", *(f"{epoch}:{start}" for epoch, start in epochs)])
