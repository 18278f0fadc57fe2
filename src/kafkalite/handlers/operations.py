"""The operations that a user may do with a thing, as bits by the number of the operation (KIP-430).

Owns which there are for each kind of thing; of them those are told that the user may do.
"""

from __future__ import annotations

from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.security.acl import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    WRITE,
)

# The value where nobody asked.
NOT_ASKED = -(2**31)

_OF_KINDS = {
    TOPIC: (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    GROUP: (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    CLUSTER: (
        CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE,
    ),
}  # fmt: skip
_ALL = {kind: sum(1 << each for each in those) for kind, those in _OF_KINDS.items()}


def operations(context: Context, call: Call, kind: int, name: str) -> int:
    """What who asks may do with the thing of this kind and name."""
    if context.authorizer is None:
        return _ALL[kind]
    return sum(
        1 << each
        for each in _OF_KINDS[kind]
        if may(context, call, each, kind, name, is_quiet=True)
    )


def cluster_operations(context: Context, call: Call) -> int:
    """The same for the cluster; none for who may not describe it."""
    if not may(context, call, DESCRIBE, CLUSTER, CLUSTER_NAME):
        return 0
    return operations(context, call, CLUSTER, CLUSTER_NAME)
