"""The disk: the only module that touches real files.

Owns open file descriptors, of which a bounded number is kept: a `File` is a path that opens itself
when it is used and may be closed behind its back when too many others are. It never decides what a
failure means: every failure is an `OSError` that goes up as it is, and a failed `sync` is never
tried again here.

Threads: a `File` belongs to one thread at a time. Files used by the thread that built the
`RealDisk` share the bounded cache; a file used by any other thread stays open until that thread
closes it.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeVar

from kafkalite.env import unix
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.descriptors import OUT_OF_DESCRIPTORS, Descriptors

Buffer = bytes | bytearray | memoryview

T = TypeVar("T")

# When nothing more can be opened, so many files are closed that nobody used lately.
CLOSED_AT_ONCE = 8
# How often, and how long apart, a background thread tries again: the files are not its to close.
OPEN_ATTEMPTS = 250
OPEN_PAUSE_SECONDS = 0.02


class File(Protocol):
    """Bytes at positions, in one file."""

    path: str

    def fileno(self) -> int | None:
        """A descriptor for the next system call and no later one; None where there is none
        (memory)."""
        ...

    def read_at(self, position: int, length: int) -> bytes:
        """The bytes at a position; fewer than asked only at the end of the file."""
        ...

    def write_at(self, position: int, data: Buffer) -> None:
        """Writes all of `data` or raises; after an error any part of it may be in the file."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def reserve(self, size: int) -> None:
        """Makes a file longer than its contents, so that it need not grow with each write; nothing
        where that helps nobody (memory)."""
        ...

    def sync(self) -> None:
        """Returns when the contents are on stable storage; after an error nothing is known about
        them."""
        ...

    def close(self) -> None:
        """Gives back what it holds; a file that is used again opens itself again."""
        ...


class DiskLock(Protocol):
    """A lock file that is held."""

    def release(self) -> None: ...


class LockedByOther(Exception):
    """The lock is held by another process; `pid` is None when that process did not say who it
    is."""

    def __init__(self, path: str, pid: int | None) -> None:
        super().__init__(f"{path} is locked by process {pid or 'unknown'}")
        self.path = path
        self.pid = pid


class Disk(Protocol):
    """Files and directories, by path with `/` between names."""

    def open(self, path: str) -> File:
        """A file that exists; nothing is touched until it is used."""
        ...

    def create(self, path: str) -> File:
        """A new empty file, in place of one that may be there."""
        ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """Makes a directory and those above it; one that is there stays."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Atomic, also over an existing file; a `File` keeps working when its `path` is set by its
        owner."""
        ...

    def sync_directory(self, path: str) -> None:
        """Makes creations, renames and removals in this directory last."""
        ...

    def size_of(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def space(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume that holds `path`."""
        ...

    def lock(self, path: str) -> DiskLock:
        """Takes a lock file for this process or raises `LockedByOther`."""
        ...


@dataclass(slots=True)
class FileRange:
    """A part of a file that someone else reads or sends: what a fetch returns instead of bytes."""

    file: File
    position: int
    length: int

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        return self.file.read_at(self.position, self.length)


def read_whole(disk: Disk, path: str) -> bytes:
    """All bytes of a small file, which is closed again."""
    file = disk.open(path)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def replace_file(disk: Disk, path: str, data: Buffer, *, is_synced: bool = True) -> None:
    """Puts new contents in place so that after a crash there is the old file or the new one, whole.

    Without `is_synced` that holds when the process dies, not when the machine does.
    """
    temporary = path + ".tmp"
    write_synced(disk, temporary, data, is_synced=is_synced)
    disk.rename(temporary, path)
    if is_synced:
        disk.sync_directory(path.rpartition("/")[0])


def write_synced(disk: Disk, path: str, data: Buffer, *, is_synced: bool = True) -> None:
    """A file with these bytes, on stable storage; its name is not yet."""
    file = disk.create(path)
    try:
        file.write_at(0, data)
        if is_synced:
            file.sync()
    finally:
        file.close()


def default_open_files() -> int:
    """Half of what the system lets this process open: the other half is for sockets."""
    return max(64, min(Descriptors.of_process().limit, 65_536) // 2)


class RealFile:
    """A file of the machine, opened when used."""

    __slots__ = ("_descriptor", "_disk", "_recent", "path")

    def __init__(self, disk: RealDisk, path: str, descriptor: int = -1) -> None:
        self.path = path
        self._disk = disk
        self._descriptor = descriptor
        self._recent = True

    def fileno(self) -> int:
        self._recent = True
        return self._descriptor if self._descriptor >= 0 else self._disk._open_descriptor(self)

    def read_at(self, position: int, length: int) -> bytes:
        data = os.pread(self.fileno(), length, position)
        if len(data) == length or not data:
            return data
        return data + self._read_rest(position + len(data), length - len(data))

    def _read_rest(self, position: int, length: int) -> bytes:
        parts = []
        while length > 0:
            part = os.pread(self.fileno(), length, position)
            if not part:
                break
            parts.append(part)
            position += len(part)
            length -= len(part)
        return b"".join(parts)

    def write_at(self, position: int, data: Buffer) -> None:
        descriptor = self._descriptor  # as fileno() does, without a call more for each batch
        if descriptor < 0:
            descriptor = self._disk._open_descriptor(self)
        self._recent = True
        try:
            written = os.pwrite(descriptor, data, position)
            if written != len(data):
                self._write_rest(position + written, memoryview(data)[written:])
        except OSError as error:
            error.filename = self.path  # a call on a descriptor does not know it
            raise

    def _write_rest(self, position: int, rest: memoryview) -> None:
        while rest:
            written = os.pwrite(self.fileno(), rest, position)
            position += written
            rest = rest[written:]

    def size(self) -> int:
        return os.fstat(self.fileno()).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fileno(), size)

    def reserve(self, size: int) -> None:
        os.ftruncate(self.fileno(), size)

    def sync(self) -> None:
        try:
            unix.sync_data(self.fileno())
        except OSError as error:
            error.filename = self.path
            raise

    def close(self) -> None:
        self._disk._close_descriptor(self)


class RealLock:
    """A lock file held with `flock`; our process id is in it for the next one to read."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealDisk:
    """The machine's file systems."""

    def __init__(self, max_open_files: int | None = None) -> None:
        unix.check_files()
        self._max_open_files = max_open_files or default_open_files()
        self._last_descriptor = Descriptors.of_process().kept_files_end
        self._owner = threading.get_ident()
        # In second-chance order: the next to be closed first.
        self._open: OrderedDict[RealFile, None] = OrderedDict()

    # --- descriptors ------------------------------------------------------------------------------

    def _open_descriptor(self, file: RealFile) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC
        file._descriptor = self._with_room(lambda: os.open(file.path, flags))
        self._remember(file)
        return file._descriptor

    def _remember(self, file: RealFile) -> None:
        if threading.get_ident() == self._owner:
            while len(self._open) >= self._max_open_files:
                self._evict_one()
            if file._descriptor >= self._last_descriptor and self._open:
                self._evict_one()
            self._open[file] = None

    def _evict_one(self) -> None:
        """Closes the first file that was not used since the hand last passed it."""
        while True:
            file = next(iter(self._open))
            if not file._recent:
                break
            file._recent = False
            self._open.move_to_end(file)
        del self._open[file]
        if file._descriptor >= 0:  # or a thread that works in the background closed it
            os.close(file._descriptor)
            file._descriptor = -1

    def _with_room(self, call: Callable[[], T]) -> T:
        """What a call opens; when nothing more can be opened, after room was made or waited for."""
        for attempt in range(OPEN_ATTEMPTS):
            try:
                return call()
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not self._made_room(attempt):
                    raise
        return call()

    def _made_room(self, attempt: int) -> bool:
        if threading.get_ident() != self._owner:
            time.sleep(OPEN_PAUSE_SECONDS)
            return True
        for _ in range(min(CLOSED_AT_ONCE, len(self._open))):
            self._evict_one()
        return attempt == 0 or bool(self._open)

    def _close_descriptor(self, file: RealFile) -> None:
        if file._descriptor < 0:
            return
        os.close(file._descriptor)
        file._descriptor = -1
        if threading.get_ident() == self._owner:
            self._open.pop(file, None)

    # --- files ------------------------------------------------------------------------------------

    def open(self, path: str) -> RealFile:
        return RealFile(self, path)

    def create(self, path: str) -> RealFile:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        file = RealFile(self, path, self._with_room(lambda: os.open(path, flags, 0o644)))
        self._remember(file)
        return file

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(self._with_room(lambda: os.listdir(path)))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        self._with_room(lambda: shutil.rmtree(path))

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def sync_directory(self, path: str) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        descriptor = self._with_room(lambda: os.open(path, flags))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def size_of(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def space(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def lock(self, path: str) -> RealLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            unix.lock(descriptor)
        except OSError:
            text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise LockedByOther(path, int(text) if text.isdigit() else None) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return RealLock(descriptor)
