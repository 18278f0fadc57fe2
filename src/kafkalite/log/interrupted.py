"""What an interrupted change left in a partition's directory, brought to one of its two ends.

Owns the meaning of `.deleted`, `.cleaned`, `.swap` and `.tmp`. It never opens a log. Invariant:
it may be interrupted itself at any point and run again, and ends the same.

A replacement of segments goes: all new files complete as `.cleaned` and synced, renamed to
`.swap`, the old segments removed, `.swap` renamed to their final names. While a `.cleaned` file
is left the old segments are all there, and the change is undone; afterwards it is completed.
"""

from __future__ import annotations

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
from kafkalite.log.segment import Segment
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
    end = base_offset + 1
    try:
        for header in segment.walk(0):
            end = header.next_offset
    except CorruptRecords:
        pass  # recovery will look at it; what it covers so far is known
    segment.close()
    return base_offset, end


def remove_orphans(disk: Disk, directory: str, names: list[str]) -> None:
    """Removes indexes whose segment is gone."""
    for name in names:
        for suffix in (INDEX, TIME_INDEX, TXN_INDEX):
            if is_offset_name(name, suffix) and offset_name(offset_of(name), LOG) not in names:
                disk.remove(f"{directory}/{name}")
