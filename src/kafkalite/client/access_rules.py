"""Access rules as a cluster keeps them: found by filters, added, removed.

Owns how a rule and a filter are said in requests, and read from answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkalite.client.admin import Admin, check
from kafkalite.protocol.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafkalite.security.acl import Acl, AclFilter


def question(wanted: AclFilter) -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=wanted.kind, resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern, principal_filter=wanted.principal,
        host_filter=wanted.host, operation=wanted.operation, permission_type=wanted.permission,
    )  # fmt: skip


def rules_in(answer: Any) -> list[Acl]:
    """What an answer to the question has."""
    return [
        Acl(
            each.resource_type, each.resource_name, each.pattern_type, rule.principal, rule.host,
            rule.operation, rule.permission_type,
        )
        for each in answer.resources
        for rule in each.acls
    ]  # fmt: skip


def creation(rules: Iterable[Acl]) -> CreateAclsRequest:
    return CreateAclsRequest(creations=[
        CreateAclsRequest.Creation(
            resource_type=each.kind, resource_name=each.name, resource_pattern_type=each.pattern,
            principal=each.principal, host=each.host, operation=each.operation,
            permission_type=each.permission,
        )
        for each in rules
    ])  # fmt: skip


def deletion(filters: Iterable[AclFilter]) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=[
        DeleteAclsRequest.Filter(
            resource_type_filter=each.kind, resource_name_filter=each.name,
            pattern_type_filter=each.pattern, principal_filter=each.principal,
            host_filter=each.host, operation=each.operation, permission_type=each.permission,
        )
        for each in filters
    ])  # fmt: skip


def found(admin: Admin, wanted: AclFilter) -> list[Acl]:
    answer = admin.ask(question(wanted))
    check("the access rules cannot be had", answer)
    return rules_in(answer)


def add(admin: Admin, what: str, rule: Acl) -> None:
    [result] = admin.ask(creation([rule])).results
    check(f"{what} is not added", result)


def remove(admin: Admin, what: str, wanted: AclFilter) -> int:
    """How many there were."""
    [result] = admin.ask(deletion([wanted])).filter_results
    check(f"{what} is not removed", result)
    for each in result.matching_acls:
        check(f"{what} is not removed", each)
    return len(result.matching_acls)
