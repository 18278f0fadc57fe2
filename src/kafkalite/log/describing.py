"""What a log directory holds, for those who ask from outside.

Owns the view and nothing else. Invariant: a directory that is offline tells nothing but that.
"""

from __future__ import annotations

from kafkalite.env.dataclasses import dataclass
from kafkalite.log.directory import LogDirectory
from kafkalite.log.partition_log import PartitionLog


@dataclass(slots=True)
class DirectoryInfo:
    """What DescribeLogDirs tells of one directory."""

    path: str
    is_online: bool
    total_bytes: int
    usable_bytes: int
    logs: list[PartitionLog]


def describe(directory: LogDirectory, logs: list[PartitionLog]) -> DirectoryInfo:
    """The directory with the logs in it."""
    if not directory.home.is_online:
        return DirectoryInfo(directory.path, False, -1, -1, [])
    total, usable = directory.home.disk.space(directory.path)
    return DirectoryInfo(directory.path, True, total, usable, logs)
