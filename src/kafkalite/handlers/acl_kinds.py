"""Kinds of resources, patterns, operations and permissions in requests about access rules.

Zero stands for a kind that the client's own library does not know: Apache Kafka takes a request
with one for malformed and closes the connection.
"""

from __future__ import annotations

from kafkalite.protocol.errors import MalformedFrame

UNKNOWN = 0


def refuse_unknown(*kinds: int) -> None:
    if UNKNOWN in kinds:
        raise MalformedFrame("an access rule with an unknown kind")
