"""What went wrong, by how far it reaches: the one place that tells the kinds of failure apart.

Owns the kinds, and which of them an exception is. What is done about each is said where it is done.
Invariant: a failure reaches no farther than what it is about.
"""

from __future__ import annotations

import errno
from enum import Enum

from kafkalite.env.descriptors import OUT_OF_DESCRIPTORS
from kafkalite.protocol.errors import KafkaError, MalformedFrame

# A disk that answers so is full and otherwise well.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Kind(Enum):
    """Who is touched, and what heals it."""

    PEER = "what the peer did"  # it is told, or cut off with one line in the log: its own to mend
    REQUEST = "what this request met"  # it is told and may ask again: no room, no descriptor, gone
    PARTITION = "this partition"  # what its files say cannot be: offline and named, others go on
    DIRECTORY = "this directory"  # its disk fails: offline until the broker starts again
    BROKER = "this broker"  # a directory failed that it cannot do without: it ends


def kind_of(error: BaseException) -> Kind:
    """The kind of a failure, as far as that can be told without knowing what was being done.

    A file that is not there is its disk's failure, unless the log that it was of is out of service:
    that is `PartitionLog.storage_error`'s to know. So is which directory the broker cannot do
    without the broker's.
    """
    if isinstance(error, MalformedFrame):
        return Kind.PEER
    if isinstance(error, KafkaError):
        return Kind.REQUEST
    if isinstance(error, OSError):
        is_passing = error.errno in NO_ROOM or error.errno in OUT_OF_DESCRIPTORS
        return Kind.REQUEST if is_passing else Kind.DIRECTORY
    return Kind.PARTITION


def is_out_of_descriptors(error: object) -> bool:
    """Whether the process, or the system, has too many files open: no disk's failure."""
    return isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS
