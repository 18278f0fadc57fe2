"""A disk that tears and forgets: what is left after a crash is drawn from all that may be left.

Owns the difference between what was written and what is on stable storage. Until a file is
synced, each write to it may be lost, kept or torn, and its size may have grown without its
bytes; until a directory is synced, each creation, removal and renaming in it may be lost or
kept. It never fails by itself unless it is told to. Invariant: what was synced is in every state
that `crashed` returns.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

from kafkalite.env.disk import Buffer, DiskLock
from kafkalite.env.memory import MemoryLock

SECTOR_BYTES = 512


@dataclass(slots=True)
class Write:
    """A change of a file that is not on stable storage yet; without data it sets the size."""

    position: int
    data: bytes | None


@dataclass(slots=True)
class Inode:
    """A file apart from its names, or a directory."""

    data: bytearray = field(default_factory=bytearray)
    stable: bytes = b""
    pending: list[Write] = field(default_factory=list)
    entries: dict[str, Inode] | None = None  # of a directory
    stable_entries: dict[str, Inode] = field(default_factory=dict)
    changes: list[dict[str, Inode | None]] = field(default_factory=list)  # each all or nothing


def _directory() -> Inode:
    return Inode(entries={})


def _apply(data: bytearray, write: Write) -> None:
    if write.data is None:
        if write.position < len(data):
            del data[write.position :]
        else:
            data.extend(bytes(write.position - len(data)))
        return
    if write.position > len(data):
        data.extend(bytes(write.position - len(data)))
    data[write.position : write.position + len(write.data)] = write.data


class CrashFile:
    """A file of a `CrashDisk`."""

    __slots__ = ("_disk", "_inode", "path")

    def __init__(self, disk: CrashDisk, path: str, inode: Inode | None = None) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode

    def _reach(self) -> Inode:
        if self._inode is None:
            self._disk.opens(self.path)
            self._inode = self._disk.file_at(self.path)
        return self._inode

    def fileno(self) -> None:
        return None

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self._reach().data[position : position + length])

    def write_at(self, position: int, data: Buffer) -> None:
        inode = self._reach()
        kept = self._disk.operation("write", self.path, len(data))
        self._change(inode, Write(position, bytes(data[:kept])))
        if kept < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)

    def truncate(self, size: int) -> None:
        inode = self._reach()
        self._disk.operation("truncate", self.path)
        self._change(inode, Write(size, None))

    def reserve(self, size: int) -> None:
        self.truncate(size)

    def _change(self, inode: Inode, write: Write) -> None:
        inode.pending.append(write)
        _apply(inode.data, write)

    def size(self) -> int:
        return len(self._reach().data)

    def sync(self) -> None:
        inode = self._reach()
        self._disk.operation("sync", self.path)
        inode.stable = bytes(inode.data)
        inode.pending.clear()

    def close(self) -> None:
        self._inode = None


class CrashDisk:
    """Files and directories of which nothing lasts that was not synced.

    `before_operation` is called before each change with its kind, path and size. It may raise what
    a failing disk raises, or return how many bytes of a write go through before the disk is full.
    `before_open` is called before each opening of a file, and may raise as well.
    """

    def __init__(self) -> None:
        self._root = _directory()
        self._locks: set[str] = set()
        self.operations = 0
        self.before_operation: Callable[[str, str, int], int | None] | None = None
        self.before_open: Callable[[str], None] | None = None

    # --- what tests do with it --------------------------------------------------------------------

    def operation(self, kind: str, path: str, size: int = 0) -> int:
        """Counts a change; returns how many bytes of it go through."""
        self.operations += 1
        kept = self.before_operation(kind, path, size) if self.before_operation else None
        return size if kept is None else kept

    def opens(self, path: str) -> None:
        """A file is about to be opened."""
        if self.before_open is not None:
            self.before_open(path)

    def stopped(self) -> CrashDisk:
        """The disk as the next process finds it when only this one dies: all is there, and what
        was not synced is still not."""
        disk = CrashDisk()
        disk._root = deepcopy(self._root)
        return disk

    def crashed(self, random: Random) -> CrashDisk:
        """The disk as it may be found when the machine dies now."""
        file_mode = random.choice(_MODES)
        directory_mode = random.choice(_MODES)
        return self._copy(
            lambda inode: _surviving_data(inode, random, file_mode),
            lambda inode: _surviving_entries(inode, random, directory_mode),
        )

    def _copy(
        self, data_of: Callable[[Inode], bytes], entries_of: Callable[[Inode], dict[str, Inode]]
    ) -> CrashDisk:
        copies: dict[int, Inode] = {}

        def copy(inode: Inode) -> Inode:
            found = copies.get(id(inode))
            if found is not None:
                return found
            if inode.entries is None:
                data = data_of(inode)
                made = copies[id(inode)] = Inode(bytearray(data), data)
                return made
            made = copies[id(inode)] = _directory()
            made.entries = {name: copy(entry) for name, entry in entries_of(inode).items()}
            made.stable_entries = dict(made.entries)
            return made

        disk = CrashDisk()
        disk._root = copy(self._root)
        return disk

    def contents(self) -> dict[str, bytes]:
        """Every file with its bytes, by path."""
        return {
            path: bytes(inode.data)
            for path, inode in self._walk("", self._root)
            if inode.entries is None
        }

    def _walk(self, path: str, inode: Inode) -> Iterator[tuple[str, Inode]]:
        for name, entry in sorted((inode.entries or {}).items()):
            inner = f"{path}/{name}"
            yield inner, entry
            yield from self._walk(inner, entry)

    # --- names ------------------------------------------------------------------------------------

    def _find(self, path: str) -> Inode | None:
        inode = self._root
        for name in path.split("/"):
            if name not in ("", "."):
                found = (inode.entries or {}).get(name)
                if found is None:
                    return None
                inode = found
        return inode

    def _parent(self, path: str) -> tuple[Inode, str]:
        parent, _, name = path.rpartition("/")
        inode = self._find(parent)
        if inode is None or inode.entries is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode, name

    def file_at(self, path: str) -> Inode:
        inode = self._find(path)
        if inode is None or inode.entries is not None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return inode

    def _change(self, directory: Inode, changes: dict[str, Inode | None]) -> None:
        assert directory.entries is not None
        directory.changes.append(changes)
        _change_entries(directory.entries, changes)

    # --- Disk -------------------------------------------------------------------------------------

    def open(self, path: str) -> CrashFile:
        return CrashFile(self, path)

    def create(self, path: str) -> CrashFile:
        parent, name = self._parent(path)
        self.opens(path)
        self.operation("create", path)
        inode = (parent.entries or {}).get(name)
        if inode is not None and inode.entries is None:
            # Opened with truncation: the same file, whose old bytes may come back.
            inode.pending.append(Write(0, None))
            inode.data.clear()
        else:
            inode = Inode()
            self._change(parent, {name: inode})
        return CrashFile(self, path, inode)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        inode = self._find(path)
        return inode is not None and inode.entries is not None

    def list_directory(self, path: str) -> list[str]:
        inode = self._find(path)
        if inode is None or inode.entries is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return sorted(inode.entries)

    def make_directory(self, path: str) -> None:
        reached = ""
        for name in path.strip("/").split("/"):
            parent, reached = reached, f"{reached}/{name}"
            if not self.exists(reached):
                self.operation("make_directory", reached)
                directory = self._find(parent)
                assert directory is not None
                self._change(directory, {name: _directory()})

    def remove(self, path: str) -> None:
        self.file_at(path)
        self.operation("remove", path)
        parent, name = self._parent(path)
        self._change(parent, {name: None})

    def remove_tree(self, path: str) -> None:
        for name in self.list_directory(path):
            inner = f"{path}/{name}"
            if self.is_directory(inner):
                self.remove_tree(inner)
            else:
                self.remove(inner)
        self.operation("remove", path)
        parent, name = self._parent(path)
        self._change(parent, {name: None})

    def rename(self, source: str, target: str) -> None:
        inode = self._find(source)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        self.operation("rename", source)
        parent, name = self._parent(source)
        new_parent, new_name = self._parent(target)
        assert parent is new_parent, "only renames within a directory are atomic here"
        self._change(parent, {name: None, new_name: inode})

    def sync_directory(self, path: str) -> None:
        inode = self._find(path)
        if inode is None or inode.entries is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self.operation("sync_directory", path)
        inode.stable_entries = dict(inode.entries)
        inode.changes.clear()

    def size_of(self, path: str) -> int:
        return len(self.file_at(path).data)

    def modified_ms(self, path: str) -> int:
        self.file_at(path)
        return 0

    def space(self, path: str) -> tuple[int, int]:
        return 1 << 40, 1 << 40

    def lock(self, path: str) -> DiskLock:
        self._locks.add(path)
        return MemoryLock(self._locks, path)


def _change_entries(entries: dict[str, Inode], changes: dict[str, Inode | None]) -> None:
    for name, inode in changes.items():
        if inode is None:
            entries.pop(name, None)
        else:
            entries[name] = inode


# --- what survives --------------------------------------------------------------------------------

_MODES = ("nothing", "everything", "prefix", "any", "any")


def _survivors(count: int, random: Random, mode: str) -> list[bool]:
    """Which of the changes that were not synced are kept."""
    if mode == "nothing":
        return [False] * count
    if mode == "everything":
        return [True] * count
    if mode == "prefix":
        kept = random.randint(0, count)
        return [index < kept for index in range(count)]
    return [random.random() < 0.5 for _ in range(count)]


def _surviving_entries(inode: Inode, random: Random, mode: str) -> dict[str, Inode]:
    entries = dict(inode.stable_entries)
    kept = _survivors(len(inode.changes), random, mode)
    for changes, is_kept in zip(inode.changes, kept, strict=True):
        if is_kept:
            _change_entries(entries, changes)
    return entries


def _surviving_data(inode: Inode, random: Random, mode: str) -> bytes:
    data = bytearray(inode.stable)
    kept = _survivors(len(inode.pending), random, mode)
    for write, is_kept in zip(inode.pending, kept, strict=True):
        if is_kept:
            _apply(data, write)
        elif write.data is not None and mode != "nothing":
            _tear(data, write, random)
    return bytes(data)


def _tear(data: bytearray, write: Write, random: Random) -> None:
    """A write that was under way: some of its sectors, some of its bytes, or only its size."""
    assert write.data is not None
    size = len(write.data)
    kind = random.randrange(4)
    if kind == 0 or size == 0:
        return
    if kind == 1:  # the file has grown, its bytes have not arrived
        end = write.position + size
        if end > len(data):
            data.extend(bytes(end - len(data)))
    elif kind == 2:  # cut at any byte
        _apply(data, Write(write.position, write.data[: random.randrange(size)]))
    else:  # some sectors
        for start in range(0, size, SECTOR_BYTES):
            if random.random() < 0.5:
                part = write.data[start : start + SECTOR_BYTES]
                _apply(data, Write(write.position + start, part))
