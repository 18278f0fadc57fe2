"""Access rules as `kafka-acls` has them: which a call names, asked of a cluster, and shown.

Rules of one resource have no order in Apache Kafka's tool; here they keep that of the words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kafkalite.client import access_rules
from kafkalite.protocol.errors import Error
from kafkalite.security.acl import Acl, AclFilter
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import execution, illegal_argument, refused, wrapped

ANYONE = "*"


class Kind(IntEnum):
    """Of resources."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Pattern(IntEnum):
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


OPERATIONS = [each for each in Operation if each > Operation.ANY]
_CONFIGS = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
SUPPORTED: dict[Kind, set[Operation]] = {
    Kind.TOPIC: {
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DELETE,
        Operation.ALTER, *_CONFIGS,
    },
    Kind.GROUP: {Operation.READ, Operation.DESCRIBE, Operation.DELETE, *_CONFIGS},
    Kind.CLUSTER: {
        Operation.CREATE, Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE, Operation.ALTER,
        Operation.DESCRIBE, *_CONFIGS,
    },
    Kind.TRANSACTIONAL_ID: {Operation.DESCRIBE, Operation.WRITE, Operation.TWO_PHASE_COMMIT},
    Kind.DELEGATION_TOKEN: {Operation.DESCRIBE},
    Kind.USER: {Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Resource:
    """A pattern of resources, or a filter for such."""

    kind: Kind
    name: str | None
    pattern: Pattern

    def __str__(self) -> str:
        name = "<any>" if self.name is None else self.name
        return (
            f"ResourcePattern(resourceType={self.kind.name}, name={name}, "
            f"patternType={self.pattern.name})"
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """Who may do what, or may not; a filter for such where something is None or any."""

    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name}, "
            f"permissionType={self.permission.name})"
        )


ANY_RESOURCE = Resource(Kind.ANY, None, Pattern.ANY)
ANY_ENTRY = Entry(None, None, Operation.ANY, Permission.ANY)
CLUSTER = Resource(Kind.CLUSTER, "kafka-cluster", Pattern.LITERAL)
Rules = dict[Resource, list[Entry]]


def operation_name(operation: Operation) -> str:
    """As it is written in words."""
    return "".join(part.capitalize() for part in operation.name.split("_"))


def operation_of(text: str) -> Operation:
    known = {operation_name(each).upper(): each for each in Operation}
    return known.get(text.upper(), Operation.UNKNOWN)


def principal_of(text: str) -> str:
    if ":" not in text:
        raise illegal_argument(
            f"expected a string in format principalType:principalName but got {text}"
        )
    return text


def describe(asking: Asking, resource: Resource) -> Rules:
    """All rules of the resources that this is, or is a filter for."""
    wanted = AclFilter(resource.kind, resource.name, resource.pattern)
    with wrapped(execution):
        answer = asking.any("describeAcls", access_rules.question(wanted))
        _check([answer])
    found: Rules = {}
    for each in access_rules.rules_in(answer):
        entries = found.setdefault(
            Resource(Kind(each.kind), each.name, Pattern(each.pattern)), []
        )
        entries.append(Entry(
            each.principal, each.host, Operation(each.operation), Permission(each.permission)
        ))  # fmt: skip
    return found


def create(asking: Asking, resource: Resource, entries: Iterable[Entry]) -> None:
    request = access_rules.creation(
        Acl(
            resource.kind, str(resource.name), resource.pattern, str(each.principal),
            str(each.host), each.operation, each.permission,
        )
        for each in entries
    )  # fmt: skip
    with wrapped(execution):
        _check(asking.any("createAcls", request).results)


def delete(asking: Asking, resource: Resource, entries: Iterable[Entry]) -> None:
    request = access_rules.deletion(
        AclFilter(
            resource.kind, resource.name, resource.pattern, each.principal, each.host,
            each.operation, each.permission,
        )
        for each in entries
    )  # fmt: skip
    with wrapped(execution):
        results = asking.any("deleteAcls", request).filter_results
        _check(results)
        _check(match for each in results for match in each.matching_acls)


def _check(results: Iterable[Any]) -> None:
    for each in results:
        if each.error_code != Error.NONE:
            raise refused(each.error_code, each.error_message)
