"""What is done where the system lacks something."""

import fcntl
import os

import pytest

from kafkalite.env import unix
from kafkalite.env.disk import RealDisk

FULL = 51  # F_FULLFSYNC


@pytest.fixture
def calls(monkeypatch):
    """As on macOS, where fsync leaves data in the drive."""
    made = []
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", FULL, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda *words: made.append(words))
    monkeypatch.setattr(os, "fsync", lambda descriptor: made.append(descriptor))
    return made


def test_data_is_on_stable_storage_also_on_macos(calls, tmp_path):
    file = RealDisk().create(f"{tmp_path}/x")
    file.sync()
    assert calls == [(file.fileno(), FULL)]


def test_the_systems_own_fsync_does_elsewhere(calls, monkeypatch, tmp_path):
    monkeypatch.delattr(fcntl, "F_FULLFSYNC")
    file = RealDisk().create(f"{tmp_path}/x")
    file.sync()
    assert calls == [file.fileno()]


def test_what_files_need_is_named_where_it_is_not_there(monkeypatch):
    monkeypatch.delattr(os, "pread")
    with pytest.raises(OSError, match=r"\(pread\): keep it in memory"):
        RealDisk()
    monkeypatch.setattr(os, "pread", None, raising=False)
    monkeypatch.setattr(unix, "fcntl", None)
    with pytest.raises(OSError, match=r"\(flock\)"):
        RealDisk()


def test_nobody_counts_where_there_is_no_resource(monkeypatch):
    monkeypatch.setattr(unix, "resource", None)
    assert unix.open_files() == unix.UNLIMITED
    assert unix.peak_memory() == 1
    unix.raise_open_files(1 << 16)
