"""Kinds of resources, patterns, operations and permissions in requests about access rules.

Zero stands for a kind that the client's own library does not know: Apache Kafka takes a request
with one for malformed and closes the connection. Without an authorizer no rule is kept.
"""

from __future__ import annotations

from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.security.acl import UNKNOWN


def refuse_unknown(*kinds: int) -> None:
    if UNKNOWN in kinds:
        raise MalformedFrame("an access rule with an unknown kind")


def need_authorizer(context: Context) -> None:
    if context.authorizer is None:
        raise KafkaError(Error.SECURITY_DISABLED, "No Authorizer is configured.")
