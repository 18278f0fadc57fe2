"""Mounts of a test's own, seen by nobody else: where `unshare` may make a namespace for them, and
small disks there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_WITHIN = "KAFKALITE_TEST_MOUNTS"
_UNSHARE = ["unshare", "-rm"]


def are_there() -> bool:
    """Whether this process is where mounts are its own."""
    return _WITHIN in os.environ


def can_be() -> bool:
    try:
        found = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return found.returncode == 0


def run_within(module: str) -> int:
    """The same program again, where they are."""
    call = [*_UNSHARE, sys.executable, "-m", module, *sys.argv[1:]]
    return subprocess.run(call, env={**os.environ, _WITHIN: "1"}, check=False).returncode


def mount(place: Path, size: str) -> None:
    """A disk in memory."""
    call = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    subprocess.run(call, check=True)


def unmount(place: Path) -> None:
    """Also while somebody is still there."""
    subprocess.run(["umount", "--lazy", str(place)], check=True)


class Filler:
    """What takes all the room of a disk, until it is taken away."""

    def __init__(self, place: Path) -> None:
        self._file = place / "filler"

    def fill(self) -> None:
        """To the last byte."""
        chunk = bytes(1 << 16)
        with self._file.open("ab", buffering=0) as file:
            while chunk:
                try:
                    file.write(chunk)
                except OSError:
                    chunk = chunk[: len(chunk) // 2]

    def free(self) -> None:
        self._file.unlink(missing_ok=True)
