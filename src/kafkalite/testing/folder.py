"""The folder of an `EmbeddedKafka`: the directory of its one broker, or one in it for each.

Owns the choice between the two, and that a folder is used as it was begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkalite.log.directory import WrongDirectory
from kafkalite.log.names import META_PROPERTIES

if TYPE_CHECKING:
    from kafkalite.env.disk import Disk


def broker_directory(folder: str, node_id: int, count: int) -> str:
    """Where the data of one of so many brokers lies."""
    return folder if count == 1 else f"{folder}/{node_id}"


def check_folder(disk: Disk, folder: str, count: int) -> None:
    """Raises WrongDirectory for a folder that fewer or other brokers would not find their data in;
    a cluster of several may grow."""
    is_one = disk.exists(f"{folder}/{META_PROPERTIES}")
    found = 1 if is_one else _count_in(disk, folder)
    grows = count > 1 and not is_one and found <= count  # also one whose first start failed
    if found and found != count and not grows:
        brokers = "one broker" if found == 1 else f"{found} brokers"
        raise WrongDirectory(
            f"{folder} holds the data of {brokers}, which {count} would not find there: "
            f"start it with brokers={found}, or on a new folder"
        )


def _count_in(disk: Disk, folder: str) -> int:
    """How many brokers of several have begun in this folder; nought when none has."""
    if not disk.is_directory(folder):
        return 0
    names = [name for name in disk.list_directory(folder) if name.isdigit()]
    begun = [int(each) for each in names if disk.exists(f"{folder}/{each}/{META_PROPERTIES}")]
    return max(begun, default=0)
