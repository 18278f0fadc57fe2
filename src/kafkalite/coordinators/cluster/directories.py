"""The log directories of replicas, as the metadata names them by id (KIP-858).

Owns the ids that stand for no directory, and the question whether a replica's directory is there.
Decides nothing; see brokers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kafkalite.coordinators.cluster.states import PartitionState

# Not told: the log was there before directories had ids in the metadata.
MIGRATING: Final = bytes(16)
# Left to the broker, which tells where it put the replica.
UNASSIGNED: Final = bytes(15) + b"\x01"
# In a directory that is not there, nobody knows which.
LOST: Final = bytes(15) + b"\x02"


def directory_of(state: PartitionState, broker_id: int) -> bytes:
    """What the metadata says of a replica's directory."""
    named = dict(zip(state.replicas, state.directories, strict=False))
    return named.get(broker_id, MIGRATING)


def named_directory(state: PartitionState, broker_id: int) -> bytes | None:
    """The id of a directory, unless the metadata names none."""
    found = directory_of(state, broker_id)
    return None if found in (MIGRATING, UNASSIGNED, LOST) else found


def is_online(directory_id: bytes, online: Collection[bytes]) -> bool:
    """Whether a replica can be served; of a broker that told no directories all are taken for
    online."""
    if directory_id in (MIGRATING, UNASSIGNED):
        return True
    return directory_id != LOST and (not online or directory_id in online)
