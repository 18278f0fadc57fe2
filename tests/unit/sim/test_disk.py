"""The disk that forgets keeps its own word: what was synced is there, and what was not may be
gone."""

from random import Random

import pytest

from kafkalite.env.disk import read_whole
from kafkalite.sim.disk import CrashDisk


def states(disk, count=200):
    return [disk.crashed(Random(seed)) for seed in range(count)]


def test_what_was_synced_is_in_every_state():
    disk = CrashDisk()
    disk.make_directory("/d")
    disk.sync_directory("")
    file = disk.create("/d/a")
    file.write_at(0, b"x" * 2000)
    file.sync()
    disk.sync_directory("/d")
    file.write_at(2000, b"y" * 2000)
    assert all(read_whole(left, "/d/a")[:2000] == b"x" * 2000 for left in states(disk))


def test_what_was_not_synced_is_lost_kept_or_torn():
    disk = CrashDisk()
    disk.make_directory("/d")
    disk.sync_directory("")
    file = disk.create("/d/a")
    file.sync()
    disk.sync_directory("/d")
    file.write_at(0, b"y" * 2000)
    found = {read_whole(left, "/d/a") for left in states(disk)}
    assert {b"", b"y" * 2000, b"\0" * 2000} <= found
    assert any(0 < len(data) < 2000 for data in found)
    assert any(0 < data.count(0) < len(data) for data in found)


def test_names_last_only_when_their_directory_was_synced():
    disk = CrashDisk()
    disk.make_directory("/d")
    disk.sync_directory("")
    disk.create("/d/a").sync()
    assert {left.exists("/d/a") for left in states(disk)} == {True, False}
    disk.sync_directory("/d")
    disk.rename("/d/a", "/d/b")
    found = {(left.exists("/d/a"), left.exists("/d/b")) for left in states(disk)}
    assert found == {(True, False), (False, True)}


def test_a_process_that_dies_loses_nothing():
    disk = CrashDisk()
    disk.make_directory("/d")
    disk.create("/d/a").write_at(3, b"x")
    after = disk.stopped()
    assert after.contents() == {"/d/a": b"\0\0\0x"}
    assert {} in [left.contents() for left in states(after)]  # and has synced nothing


def test_a_disk_may_be_told_to_fail():
    disk = CrashDisk()
    disk.make_directory("/d")
    file = disk.create("/d/a")
    disk.before_operation = lambda kind, path, size: 2 if kind == "write" else None
    with pytest.raises(OSError):
        file.write_at(0, b"12345")
    assert file.read_at(0, 9) == b"12"
