"""Kinds of resources, patterns, operations and permissions in requests about access rules.

Zero stands for a kind that the client's own library does not know: Apache Kafka takes a request
with one for malformed and closes the connection. Without an authorizer no rule is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kafkalite.env.slicing import LOOKS_PER_STEP, Steps
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.security.acl import UNKNOWN

T = TypeVar("T")


def refuse_unknown(*kinds: int) -> None:
    if UNKNOWN in kinds:
        raise MalformedFrame("an access rule with an unknown kind")


def refuse_unknown_of(entries: Iterable[T], kinds: Callable[[T], tuple[int, ...]]) -> Steps[None]:
    """The same for each of what may be very many."""
    for number, each in enumerate(entries, 1):
        refuse_unknown(*kinds(each))
        if number % LOOKS_PER_STEP == 0:
            yield


def need_authorizer(context: Context) -> None:
    if context.authorizer is None:
        raise KafkaError(Error.SECURITY_DISABLED, "No Authorizer is configured.")
