"""The operations that a user may do with a thing, as bits by the number of the operation (KIP-430).

Owns which there are for each kind of thing. Nothing is forbidden without an authorizer, so all of
them are allowed to everybody.
"""

from __future__ import annotations

TOPIC, GROUP, CLUSTER = "topic", "group", "cluster"
CLUSTER_NAME = "kafka-cluster"  # by which access rules name the one cluster
# The value where nobody asked.
NOT_ASKED = -(2**31)

_ALL = {
    # Read, write, create, delete, alter, describe, describe and alter configs.
    TOPIC: 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11,
    # Read, delete, describe, describe and alter configs.
    GROUP: 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11,
    # Create, alter, describe, cluster action, describe and alter configs, idempotent write.
    CLUSTER: 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12,
}


def operations(principal: str, kind: str, name: str) -> int:
    """What this user may do with the thing of this kind and name."""
    return _ALL[kind]
