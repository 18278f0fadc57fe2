"""What an interrupted change left in a partition's directory, brought to one of its two ends.

Owns the meaning of `.deleted`, `.cleaned`, `.swap` and `.tmp`, and of segments that could not be
begun. It never opens a log. Invariant:
it may be interrupted itself at any point and run again, and ends the same.

A replacement of segments goes: all new files complete as `.cleaned` and synced, renamed to
`.swap`, the old segments removed, `.swap` renamed to their final names. While a `.cleaned` file
is left the old segments are all there, and the change is undone; afterwards it is completed.
"""

from __future__ import annotations

from contextlib import suppress

from kafkalite.env.disk import Disk
from kafkalite.log.names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    is_offset_name,
    offset_name,
    offset_of,
)
from kafkalite.log.seals import Seals
from kafkalite.log.segment import Segment
from kafkalite.records.batch import HEADER_BYTES
from kafkalite.records.errors import CorruptRecords

_TEMPORARY = ".tmp"


def settle(disk: Disk, directory: str) -> list[str]:
    """Undoes or completes interrupted changes; returns the names that are in the directory then."""
    names = disk.list_directory(directory)
    if not any(name.endswith((DELETED, CLEANED, SWAP, _TEMPORARY)) for name in names):
        return names
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swaps = [name for name in names if name.endswith(SWAP)]
    undone_from = min((offset_of(name) for name in cleaned), default=None)
    undone = [n for n in swaps if undone_from is not None and offset_of(n) >= undone_from]
    # The .swap files first: without a .cleaned one beside them they would count as complete.
    _remove(disk, directory, undone)
    _remove(disk, directory, cleaned)
    _remove(disk, directory, [n for n in names if n.endswith((DELETED, _TEMPORARY))])
    _complete(disk, directory, [name for name in swaps if name not in undone])
    disk.sync_directory(directory)
    return disk.list_directory(directory)


def _remove(disk: Disk, directory: str, names: list[str]) -> None:
    for name in names:
        disk.remove(f"{directory}/{name}")
    if names:
        disk.sync_directory(directory)


def _complete(disk: Disk, directory: str, swaps: list[str]) -> None:
    """Removes the segments that complete new ones replace, and gives those their names."""
    ranges = [
        _range_of(disk, directory, offset_of(name)) for name in swaps if name.endswith(LOG + SWAP)
    ]
    for name in disk.list_directory(directory):
        is_segment = any(is_offset_name(name, suffix) for suffix in SEGMENT_SUFFIXES)
        if is_segment and any(start <= offset_of(name) < end for start, end in ranges):
            disk.remove(f"{directory}/{name}")
    disk.sync_directory(directory)
    for name in swaps:
        disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")


def _range_of(disk: Disk, directory: str, base_offset: int) -> tuple[int, int]:
    """The offsets that a complete new segment covers."""
    path = f"{directory}/{offset_name(base_offset, LOG)}{SWAP}"
    segment = Segment(disk, directory, base_offset, disk.size_of(path), 0, SWAP)
    # Recovery will look at it; what it covers so far is known.
    return base_offset, max(base_offset + 1, _end_of(segment))


def without_unbegun(disk: Disk, segments: list[Segment], seals: Seals | None) -> list[Segment]:
    """Removes segments without a batch that begin before the one in front of them ends: they could
    not be begun, and that one went on. Their removal was lost, or a broker before did not remove
    them."""
    begun = segments[:1]
    for segment in segments[1:]:
        before = begun[-1]
        is_told = seals is not None and seals.is_next(before, segment.base_offset)
        if not is_told and _is_empty(segment) and _end_of(before) > segment.base_offset:
            names = [offset_name(segment.base_offset, kind) for kind in SEGMENT_SUFFIXES]
            there = [name for name in names if disk.exists(f"{segment.directory}/{name}")]
            _remove(disk, segment.directory, there)
        else:
            begun.append(segment)
    return begun


def _is_empty(segment: Segment) -> bool:
    """Whether it begins with nothing, or with what `preallocate` reserved."""
    start = segment.log.read_at(0, min(HEADER_BYTES, segment.size)) if segment.size else b""
    segment.close()
    return not any(start)


def _end_of(segment: Segment) -> int:
    """Where its last batch ends; the index is not asked, which may be damaged."""
    end = segment.base_offset
    with suppress(CorruptRecords):
        for header in segment.walk(0):
            end = header.next_offset
    segment.close()
    return end


def remove_orphans(disk: Disk, directory: str, names: list[str]) -> None:
    """Removes indexes whose segment is gone."""
    for name in names:
        for suffix in (INDEX, TIME_INDEX, TXN_INDEX):
            if is_offset_name(name, suffix) and offset_name(offset_of(name), LOG) not in names:
                disk.remove(f"{directory}/{name}")
