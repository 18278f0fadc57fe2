"""What Unix alone has, or one Unix and not another, and what is done without it.

Owns every question of whether the system has something. A broker in memory needs none of it; data
in files needs locks and reads at a position, and is refused where there are none.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any


def _module(name: str) -> Any:
    """None on Windows."""
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, resource = _module("fcntl"), _module("resource")
# Large parts of files go from the page cache to a socket, in Linux' way of saying so.
HAS_SENDFILE = sys.platform == "linux" and hasattr(os, "sendfile")
# Several buffers go to a socket at once.
HAS_GATHER = hasattr(socket.socket, "sendmsg")
UNLIMITED = 1 << 30
# Of a file that nobody inherits and that nobody waits for.
OF_OUR_OWN: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_OF_FILES = ("O_DIRECTORY", "ftruncate", "pread", "pwrite", "statvfs")


def check_files() -> None:
    """OSError where no data can be kept in files."""
    lacking = [name for name in _OF_FILES if not hasattr(os, name)]
    if fcntl is None or lacking:
        raise OSError(
            f"data in files needs what this system lacks ({', '.join(lacking or ['flock'])}): keep "
            "it in memory"
        )


def lock(descriptor: int) -> None:
    """OSError when another process holds it. Apache Kafka takes a POSIX lock on the same file: both
    are held, so that each keeps the other out."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def sync_data(descriptor: int) -> None:
    """Returns when a file's data is on stable storage; where the system's own fsync leaves it in
    the drive (macOS), by the call that does not."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    elif hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def open_files() -> int:
    """How many descriptors the process may have."""
    if resource is None:
        return UNLIMITED
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else UNLIMITED


def raise_open_files(wanted: int) -> None:
    """As far as the system lets it."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def make_room_for_files(most: int) -> None:
    """Has the system's table of this process's open files be as large as it may become. It grows by
    doubling, and where there are several threads whoever opens the file that makes it grow waits
    for all processors, 20 to 180 ms; so it is called while there is one."""
    if resource is None or fcntl is None:
        return
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError), open(os.devnull) as file:
        last = (most if soft == resource.RLIM_INFINITY else min(soft, most)) - 1
        os.close(fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, last))


def peak_memory() -> int:
    """The most that the process ever had, in the system's unit; 1 where nobody counts."""
    return 1 if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def in_forked_child(call: Callable[[], None]) -> None:
    """Has it called first in every child that the process is forked into."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)
