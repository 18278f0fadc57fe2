"""Whether who asks may do what is asked: the one way in which handlers find out.

Owns nothing. Without an authorizer everybody may do everything, and finding that out costs next to
nothing. Which request asks what is in `security.asks`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.env.slicing import Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.security.acl import CLUSTER, CLUSTER_NAME, GROUP, OPERATIONS, TOPIC, TRANSACTIONAL_ID

NAMES_PER_STEP = 64
# By the numbers of kinds of settings.
_SETTINGS_OF = {2: TOPIC, 32: GROUP}
REFUSALS = {
    TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


def may(
    context: Context, call: Call, operation: int, kind: int, name: str, *, is_quiet: bool = False
) -> bool:
    """Quietly: nobody is told of a refusal, since nothing was refused that was asked for."""
    authorizer = context.authorizer
    if authorizer is None:
        return True
    client = call.connection
    return authorizer.may(
        client.principal, client.peer_address[0], operation, kind, name, is_quiet=is_quiet
    )


def may_cluster(context: Context, call: Call, operation: int, *, is_quiet: bool = False) -> bool:
    return may(context, call, operation, CLUSTER, CLUSTER_NAME, is_quiet=is_quiet)


def may_any(context: Context, call: Call, operation: int, kind: int) -> Steps[bool]:
    """Whether there may be something of this kind with which one may do this."""
    authorizer, client = context.authorizer, call.connection
    return authorizer is None or (
        yield from authorizer.may_any(client.principal, client.peer_address[0], operation, kind)
    )


def require(context: Context, call: Call, operation: int, kind: int, name: str) -> None:
    """Raises the error that tells so where this may not be."""
    if context.authorizer is not None and not may(context, call, operation, kind, name):
        raise refusal(operation, kind, call)


def refusal(operation: int, kind: int, call: Call) -> KafkaError:
    why = None
    if kind == CLUSTER:
        why = f"Request of {call.connection.principal} needs {OPERATIONS[operation]} permission."
    return KafkaError(REFUSALS[kind], why)


def permitted(
    context: Context,
    call: Call,
    operation: int,
    kind: int,
    names: Iterable[str],
    *,
    is_quiet: bool = False,
) -> Steps[set[str]]:
    """Those of the names with which one may do this, which is asked once for each."""
    allowed: set[str] = set()
    yield from divide(context, call, operation, kind, names, allowed, set(), is_quiet=is_quiet)
    return allowed


def divide(
    context: Context,
    call: Call,
    operation: int,
    kind: int,
    names: Iterable[str],
    allowed: set[str],
    refused: set[str],
    *,
    is_quiet: bool = False,
) -> Steps[None]:
    """Puts each name among those with which one may do this, or among the others."""
    for number, name in enumerate(dict.fromkeys(names), 1):
        is_allowed = may(context, call, operation, kind, name, is_quiet=is_quiet)
        (allowed if is_allowed else refused).add(name)
        if number % NAMES_PER_STEP == 0:
            yield


def require_for_settings(
    context: Context, call: Call, operation: int, resource_type: int, name: str
) -> None:
    """The same for what has settings: those of brokers and of client metrics are the cluster's."""
    kind = _SETTINGS_OF.get(resource_type, CLUSTER)
    if not may(context, call, operation, kind, CLUSTER_NAME if kind == CLUSTER else name):
        raise KafkaError(REFUSALS[kind])
