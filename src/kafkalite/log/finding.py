"""What a log directory holds when a broker starts.

Owns the reading of directory names: which are logs to be opened, which are on their way off the
disk, which are nobody's. It opens nothing. Invariant: what a name does not tell is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial

from kafkalite.env.disk import Disk
from kafkalite.log.choosing import TopicOf
from kafkalite.log.config import LogConfig
from kafkalite.log.directory import LogDirectory
from kafkalite.log.loader import Opening, topic_id_in
from kafkalite.log.names import (
    CLEANER_OFFSETS,
    CORRUPT,
    HIGH_WATERMARKS,
    LOG,
    LOG_STARTS,
    METADATA_DIRECTORY,
    RECOVERY_POINTS,
    offset_name,
    parse_partition_directory,
    parse_renamed_directory,
)

logger = logging.getLogger(__name__)


def find_openings(
    directory: LogDirectory,
    config_of: Callable[[str], LogConfig],
    topic_of: TopicOf,
    kept: Collection[str],
) -> list[Opening]:
    """The logs to be opened; what was deleted is removed, but for what is to be kept."""
    recovery_points = directory.read(RECOVERY_POINTS)
    log_starts = directory.read(LOG_STARTS)
    high_watermarks = directory.read(HIGH_WATERMARKS)
    cleaned = directory.read(CLEANER_OFFSETS)
    disk = directory.home.disk
    openings: list[Opening] = []
    strays: list[str] = []
    for name in disk.list_directory(directory.path):
        path = f"{directory.path}/{name}"
        if not disk.is_directory(path) or name == METADATA_DIRECTORY or path in kept:
            continue
        found = parse_partition_directory(name)
        renamed = parse_renamed_directory(name)
        if renamed is not None and renamed[2] == "delete":
            directory.home.remove_later(partial(list, [path]), 0)
            continue
        if renamed is not None and renamed[2] == "stray":
            if has_no_record(disk, path):
                directory.home.remove_later(partial(list, [path]), 0)
            else:
                strays.append(name)
            continue
        if renamed is not None and renamed[2] == "future":
            # The topic may be cut in the name of the directory.
            topic, partition, _ = renamed
            found = topic_of(topic_id_in(disk, path), partition) or topic, partition
        if found is None:
            logger.warning("%s is no partition of this broker and is left alone", path)
            continue
        openings.append(
            Opening(
                *found,
                path,
                config_of(found[0]),
                recovery_points.get(found, 0),
                log_starts.get(found, 0),
                high_watermarks.get(found),
                cleaned.get(found, 0),
                directory.was_clean,
                directory.was_closed_here,
            )
        )
    if strays:
        logger.warning(
            "%s has logs that no topic of this cluster knows: %s. They are left alone; remove those"
            " that nobody misses", directory.path, ", ".join(strays),
        )  # fmt: skip
    return openings


def has_no_record(disk: Disk, path: str) -> bool:
    """Whether a log has never had one, nor anything that may have been one."""
    names = [name for name in disk.list_directory(path) if LOG in name or name.endswith(CORRUPT)]
    return all(name == offset_name(0, LOG) and not disk.size_of(f"{path}/{name}") for name in names)
