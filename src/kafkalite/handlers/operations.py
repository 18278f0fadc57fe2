"""The operations a client may do, as bits by the number of the operation (KIP-430).

Nothing is forbidden without an authorizer, so these are all that there are for each kind of thing.
"""

from __future__ import annotations

# Read, write, create, delete, alter, describe, describe and alter configs.
ALL_TOPIC_OPERATIONS = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11
# Create, alter, describe, cluster action, describe and alter configs, idempotent write.
ALL_CLUSTER_OPERATIONS = 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
# The value where nobody asked.
NOT_ASKED = -(2**31)
