"""A checkpoint that was cut is never taken for a whole one, however much is left of it."""

from __future__ import annotations

import pytest

from kafkalite.log.checkpoints import (
    CorruptFile,
    read_epochs,
    read_offsets,
    write_epochs,
    write_offsets,
)
from kafkalite.sim.disk import CrashDisk

PATH = "/data/checkpoint"


def cut(disk: CrashDisk) -> list[CrashDisk]:
    """Disks with the file cut at each byte; one that is empty says nothing, and is none of them."""
    size, found = disk.size_of(PATH), []
    whole = disk.open(PATH).read_at(0, size)
    for kept in range(1, size):
        other = CrashDisk()
        other.make_directory("/data")
        other.create(PATH).write_at(0, whole[:kept])
        found.append(other)
    return found


@pytest.fixture
def disk() -> CrashDisk:
    disk = CrashDisk()
    disk.make_directory("/data")
    return disk


def test_epochs(disk: CrashDisk) -> None:
    epochs = [(0, 7), (3, 42)]
    write_epochs(disk, PATH, epochs)
    assert read_epochs(disk, PATH) == epochs
    for each in cut(disk):
        with pytest.raises(CorruptFile, match=PATH):
            read_epochs(each, PATH)


def test_offsets(disk: CrashDisk) -> None:
    offsets = {("t", 0): 40, ("u", 1): 1234}
    write_offsets(disk, PATH, offsets)
    assert read_offsets(disk, PATH) == offsets
    for each in cut(disk):
        with pytest.raises(CorruptFile, match=PATH):
            read_offsets(each, PATH)
