"""Decides on access rules: which are taken, and which a filter removes.

Owns Kafka's rules for what may be one, and that the same rule is there once, under one id. Who may
change them was asked before.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.image_records import acl_record
from kafkalite.coordinators.cluster.view import MAX_RECORDS_PER_REQUEST, View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    RemoveAccessControlEntryRecord,
)
from kafkalite.security.acl import (
    ALLOW,
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    KINDS,
    LITERAL,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    PREFIXED,
    UNKNOWN,
    Acl,
    AclFilter,
    known,
)

MATCHED_PER_STEP = 64
Result = CreateAclsResponse.Result
FilterResult = DeleteAclsResponse.FilterResult


def create_acls(view: View, request: CreateAclsRequest) -> Steps[Effects]:
    """Adds the rules that are not there yet."""
    made: dict[Acl, bytes] = {}
    results: list[Result] = []
    for asked in request.creations:
        acl = Acl(
            known(KINDS, asked.resource_type), asked.resource_name,
            known(PATTERNS, asked.resource_pattern_type), asked.principal, asked.host,
            known(OPERATIONS, asked.operation), known(PERMISSIONS, asked.permission_type),
        )  # fmt: skip
        why = _fault(acl)
        results.append(
            Result(error_code=Error.NONE if why is None else Error.INVALID_REQUEST,
                   error_message=why or "")
        )
        if why is None and acl not in made and acl not in view.image.acl_ids:
            made[acl] = view.random_uuid()
            _check_size(made)
        if len(results) % ELEMENTS_PER_STEP == 0:
            yield
    records = (acl_record(acl_id, acl) for acl, acl_id in made.items())
    return (yield from decided_in_steps(view, records, CreateAclsResponse(results=results)))


def _fault(acl: Acl) -> str | None:
    """Why there can be no such rule."""
    if acl.kind == CLUSTER and acl.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not acl.name:
        return "Invalid empty resource name"
    if acl.kind in (UNKNOWN, ANY):
        return f"Invalid resourceType {KINDS[acl.kind]}"
    if acl.pattern not in (LITERAL, PREFIXED):
        return f"Invalid patternType {PATTERNS[acl.pattern]}"
    if acl.operation in (UNKNOWN, ANY):
        return f"Invalid operation {OPERATIONS[acl.operation]}"
    if acl.permission not in (DENY, ALLOW):
        return f"Invalid permissionType {PERMISSIONS[acl.permission]}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )
    return None


def delete_acls(view: View, request: DeleteAclsRequest) -> Steps[Effects]:
    """Removes the rules that any of the filters means; each filter is told all that it means."""
    doomed: dict[bytes, None] = {}
    results: list[FilterResult] = []
    for asked in request.filters:
        wanted = AclFilter(
            known(KINDS, asked.resource_type_filter), asked.resource_name_filter,
            known(PATTERNS, asked.pattern_type_filter), asked.principal_filter, asked.host_filter,
            known(OPERATIONS, asked.operation), known(PERMISSIONS, asked.permission_type),
        )  # fmt: skip
        why = _filter_fault(wanted)
        if why is None:
            results.append((yield from _delete(view, wanted, doomed)))
        else:
            results.append(FilterResult(error_code=Error.INVALID_REQUEST, error_message=why))
        yield
    records = (RemoveAccessControlEntryRecord(id=acl_id) for acl_id in doomed)
    response = DeleteAclsResponse(filter_results=results)
    return (yield from decided_in_steps(view, records, response))


def _filter_fault(wanted: AclFilter) -> str | None:
    if UNKNOWN in (wanted.kind, wanted.pattern):
        return "Unknown patternFilter."
    if UNKNOWN in (wanted.operation, wanted.permission):
        return "Unknown entryFilter."
    return None


def _delete(view: View, wanted: AclFilter, doomed: dict[bytes, None]) -> Steps[FilterResult]:
    result = FilterResult(error_code=Error.NONE, error_message=None)
    for number, (acl_id, acl) in enumerate(view.image.acls.items(), 1):
        if wanted.matches(acl):
            result.matching_acls.append(_matching(acl))
            doomed[acl_id] = None
            _check_size(doomed)
        if number % MATCHED_PER_STEP == 0:
            yield
    return result


def _matching(acl: Acl) -> DeleteAclsResponse.MatchingAcl:
    return DeleteAclsResponse.MatchingAcl(
        error_code=Error.NONE,
        error_message=None,
        resource_type=acl.kind,
        resource_name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _check_size(records: dict[Acl, bytes] | dict[bytes, None]) -> None:
    if len(records) > MAX_RECORDS_PER_REQUEST:
        why = "Unable to perform excessively large batch operation."
        raise KafkaError(Error.POLICY_VIOLATION, why)
