"""Names of files and directories, as Apache Kafka spells them.

Owns the spelling and nothing else: no file is touched here. Invariant: a name that these functions
build is parsed back to the same values, but for a topic that had to be cut: whose such a directory
is tells the topic id in it.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CUT = f".cut{DELETED}"
CLEANED = ".cleaned"
SWAP = ".swap"
CORRUPT = ".corrupt"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
META_PROPERTIES = "meta.properties"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
# The log of the cluster's metadata lies among the others and is not one of theirs.
METADATA_DIRECTORY = "__cluster_metadata-0"

_LONGEST_DIRECTORY_NAME = 255
_PARTITION = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)$")
_RENAMED = re.compile(
    r"(?P<topic>.+)-(?P<partition>\d+)\.(?P<id>[0-9a-f]{32})-(?P<role>delete|future|stray)$"
)


def offset_name(offset: int, suffix: str = "") -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int:
    """The offset in front of the first dot."""
    return int(name.partition(".")[0])


def is_offset_name(name: str, suffix: str) -> bool:
    return name.endswith(suffix) and name.partition(".")[0].isdigit()


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def renamed_directory(topic: str, partition: int, unique: str, role: str) -> str:
    """`<topic>-<partition>.<uuid>-<role>`, with the topic cut where a file system's limit needs
    it."""
    tail = f"-{partition}.{unique}-{role}"
    return topic[: _LONGEST_DIRECTORY_NAME - len(tail)] + tail


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    match = _PARTITION.match(name)
    return (match["topic"], int(match["partition"])) if match else None


def parse_renamed_directory(name: str) -> tuple[str, int, str] | None:
    """Topic, partition and role (`delete`, `future`, `stray`) of a renamed directory."""
    match = _RENAMED.match(name)
    return (match["topic"], int(match["partition"]), match["role"]) if match else None


def stray_path(path: str, unique: str) -> str:
    """The name under which what lies where a partition's log is to lie is kept."""
    home, _, name = path.rpartition("/")
    topic, _, partition = name.rpartition("-")
    return f"{home}/{renamed_directory(topic, int(partition), unique, 'stray')}"


def is_future_name(directory: str) -> bool:
    """Whether a path is that of a log which is to take another's place."""
    found = parse_renamed_directory(directory.rpartition("/")[2])
    return found is not None and found[2] == "future"


def uuid_text(uuid: bytes) -> str:
    """Sixteen bytes as Apache Kafka prints them."""
    return urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def parse_uuid(text: str) -> bytes:
    uuid = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(uuid) != 16:
        raise ValueError(f"{text!r} is not the text of a uuid")
    return uuid
