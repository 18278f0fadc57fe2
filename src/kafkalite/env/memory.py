"""A disk in memory: the same behaviour as a real one, nothing kept when the process ends.

Owns the bytes of its files. It never forgets or tears anything (the disk that does is in `sim`) and
it is never full unless it was given a capacity. Invariant: a removed or replaced file stays
readable through the `File` objects that were already in use, as with descriptors.

An image of it shares the bytes that were there when it was taken, so it costs the same however many
they are: what is written afterwards lies apart, and what is overwritten is copied first.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.disk import Buffer, LockedByOther

# More pieces than that are joined, so that reading does not go through all images ever taken.
MOST_PIECES = 8

# Bytes that nobody changes any more, and how many of them count.
Piece = tuple[bytearray, int]


class Contents:
    """The bytes of one file, apart from the names that lead to it."""

    __slots__ = ("data", "modified_ms", "shared", "shared_size")

    def __init__(self, modified_ms: int, shared: tuple[Piece, ...] = ()) -> None:
        self.shared = shared  # with images: what comes first
        self.shared_size = sum(size for _, size in shared)
        self.data = bytearray()  # what comes behind it
        self.modified_ms = modified_ms

    def __len__(self) -> int:
        return self.shared_size + len(self.data)

    def freeze(self) -> tuple[Piece, ...]:
        """All of it as pieces that nobody changes from here on."""
        if len(self.shared) >= MOST_PIECES:
            self.own()
        if self.data:
            self.shared += ((self.data, len(self.data)),)
            self.shared_size += len(self.data)
            self.data = bytearray()
        return self.shared

    def own(self) -> None:
        """Copies what is shared: it is about to be changed."""
        if self.shared:
            self.data = self._joined() + self.data
            self.shared, self.shared_size = (), 0

    def _joined(self) -> bytearray:
        joined = bytearray()
        for piece, size in self.shared:
            with memoryview(piece) as view:
                joined += view[:size]
        return joined

    def read(self, position: int, length: int) -> bytes:
        start = position - self.shared_size
        if start >= 0:
            with memoryview(self.data) as view:
                return bytes(view[start : start + length])
        found, begin = bytearray(), 0
        for piece, size in (*self.shared, (self.data, len(self.data))):
            with memoryview(piece) as view:
                first = max(0, position - begin)
                found += view[first : max(first, min(size, position + length - begin))]
            begin += size
        return bytes(found)

    def write(self, position: int, data: Buffer) -> None:
        if position < self.shared_size:
            self.own()
        start = position - self.shared_size
        if start > len(self.data):
            self.data.extend(bytes(start - len(self.data)))
        self.data[start : start + len(data)] = data

    def resize(self, size: int) -> None:
        if size < self.shared_size:
            self.own()
        own_size = size - self.shared_size
        if own_size > len(self.data):
            self.data.extend(bytes(own_size - len(self.data)))
        else:
            del self.data[own_size:]


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


class MemoryFile:
    """A file of a `MemoryDisk`."""

    __slots__ = ("_contents", "_disk", "path")

    def __init__(self, disk: MemoryDisk, path: str, contents: Contents | None = None) -> None:
        self.path = path
        self._disk = disk
        self._contents = contents

    def _reach(self) -> Contents:
        if self._contents is None:
            self._contents = self._disk._contents_of(self.path)
        return self._contents

    def fileno(self) -> None:
        return None

    def read_at(self, position: int, length: int) -> bytes:
        contents = self._reach()
        with self._disk._lock:
            return contents.read(position, length)

    def write_at(self, position: int, data: Buffer) -> None:
        contents = self._reach()
        with self._disk._lock:
            self._disk._take(position + len(data) - len(contents))
            contents.write(position, data)
        contents.modified_ms = self._disk._now_ms()

    def size(self) -> int:
        return len(self._reach())

    def truncate(self, size: int) -> None:
        contents = self._reach()
        with self._disk._lock:
            self._disk._used += min(0, size - len(contents))
            self._disk._take(size - len(contents))
            contents.resize(size)

    def reserve(self, size: int) -> None:
        """Memory is taken when there is something to keep in it."""

    def sync(self) -> None:
        self._reach()

    def close(self) -> None:
        self._contents = None


class MemoryLock:
    """A lock of a `MemoryDisk`; only other users of the same disk can hold it."""

    __slots__ = ("_locks", "_path")

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        self._locks.discard(self._path)


@dataclass(slots=True, frozen=True)
class DiskImage:
    """A disk as it was at one moment."""

    files: dict[str, tuple[tuple[Piece, ...], int]]  # with when each was modified
    directories: dict[str, frozenset[str]]


class MemoryDisk:
    """Files and directories in this process, optionally of a bounded size."""

    def __init__(self, capacity: int | None = None, now_ms: Callable[[], int] = lambda: 0) -> None:
        self._files: dict[str, Contents] = {}
        self._directories: dict[str, set[str]] = {"": set()}  # the names in each
        self._locks: set[str] = set()
        self._capacity = capacity
        self._used = 0
        self._now_ms = now_ms
        self._lock = threading.Lock()  # background work reads what the loop writes

    def image(self) -> DiskImage:
        """All that is on it now, whatever comes; locks are not."""
        with self._lock:
            return DiskImage(
                {path: (each.freeze(), each.modified_ms) for path, each in self._files.items()},
                {path: frozenset(names) for path, names in self._directories.items()},
            )

    @classmethod
    def of(cls, image: DiskImage, now_ms: Callable[[], int]) -> MemoryDisk:
        """Another disk that begins with what is in an image."""
        disk = cls(now_ms=now_ms)
        disk._files = {
            path: Contents(modified_ms, pieces)
            for path, (pieces, modified_ms) in image.files.items()
        }
        disk._directories = {path: set(names) for path, names in image.directories.items()}
        disk._used = sum(map(len, disk._files.values()))
        return disk

    def _contents_of(self, path: str) -> Contents:
        contents = self._files.get(path)
        if contents is None:
            raise _missing(path)
        return contents

    def _take(self, growth: int) -> None:
        if growth <= 0:
            return
        if self._capacity is not None and self._used + growth > self._capacity:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._used += growth

    def open(self, path: str) -> MemoryFile:
        return MemoryFile(self, path)

    def create(self, path: str) -> MemoryFile:
        parent, _, name = path.rpartition("/")
        if parent not in self._directories:
            raise _missing(path)
        if path in self._files:
            self.remove(path)
        contents = self._files[path] = Contents(self._now_ms())
        self._directories[parent].add(name)
        return MemoryFile(self, path, contents)

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._directories

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def list_directory(self, path: str) -> list[str]:
        if path not in self._directories:
            raise _missing(path)
        return sorted(self._directories[path])

    def make_directory(self, path: str) -> None:
        while path not in self._directories:
            self._directories[path] = set()
            parent, _, name = path.rpartition("/")
            self._directories.setdefault(parent, set()).add(name)
            path = parent

    def remove(self, path: str) -> None:
        contents = self._files.pop(path, None)
        if contents is None:
            raise _missing(path)
        self._used -= len(contents)
        self._forget_name(path)

    def remove_tree(self, path: str) -> None:
        for name in self.list_directory(path):
            inner = f"{path}/{name}"
            if inner in self._directories:
                self.remove_tree(inner)
            else:
                self.remove(inner)
        del self._directories[path]
        self._forget_name(path)

    def _forget_name(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        self._directories[parent].discard(name)

    def rename(self, source: str, target: str) -> None:
        if source in self._directories:
            self._rename_directory(source, target)
            return
        contents = self._contents_of(source)
        if target in self._files and target != source:
            self.remove(target)
        del self._files[source]
        self._forget_name(source)
        self._files[target] = contents
        parent, _, name = target.rpartition("/")
        self._directories[parent].add(name)

    def _rename_directory(self, source: str, target: str) -> None:
        if self.exists(target):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        self.make_directory(target)
        for name in self.list_directory(source):
            self.rename(f"{source}/{name}", f"{target}/{name}")
        del self._directories[source]
        self._forget_name(source)

    def sync_directory(self, path: str) -> None:
        if path not in self._directories and path not in ("/", "."):
            raise _missing(path)

    def size_of(self, path: str) -> int:
        return len(self._contents_of(path))

    def modified_ms(self, path: str) -> int:
        return self._contents_of(path).modified_ms

    def space(self, path: str) -> tuple[int, int]:
        total = self._capacity if self._capacity is not None else 1 << 40
        return total, max(0, total - self._used)

    def lock(self, path: str) -> MemoryLock:
        if path in self._locks:
            raise LockedByOther(path, os.getpid())
        self._locks.add(path)
        return MemoryLock(self._locks, path)
