"""The authorizer of one broker: made as its settings say, and kept at what the metadata says.

Owns the way from the cluster's access rules to it, a slice per turn where there are many. What it
refuses is a line of the log, with the command that would allow it, and each time one of the audit
log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter

from kafkalite.broker.audit import AuditLog
from kafkalite.config import BrokerConfig
from kafkalite.config.authorization import (
    ALLOW_WITHOUT_RULES,
    AUTHORIZER,
    STANDARD_AUTHORIZER,
    SUPER_USERS,
    allows_without_rules,
    super_users,
)
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices, Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateAclsRequest, CreateAclsResponse
from kafkalite.security.acl import Acl
from kafkalite.security.authorizer import Authorizer
from kafkalite.security.denials import described
from kafkalite.server.limits import LimitedLog

logger = logging.getLogger(__name__)


def as_request(acls: Iterable[Acl]) -> CreateAclsRequest:
    return CreateAclsRequest(
        creations=[
            CreateAclsRequest.Creation(
                resource_type=each.kind,
                resource_name=each.name,
                resource_pattern_type=each.pattern,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in acls
        ]
    )


def first_refusal(answer: CreateAclsResponse | KafkaError) -> KafkaError | None:
    if isinstance(answer, KafkaError):
        return answer
    codes = ((Error(each.error_code), each.error_message) for each in answer.results)
    return next((KafkaError(*each) for each in codes if each[0] is not Error.NONE), None)


def authorizer_of(
    config: BrokerConfig, log: LimitedLog, audit: AuditLog | None = None
) -> Authorizer | None:
    """None where everybody may do everything."""
    if config.get_str(AUTHORIZER).strip() != STANDARD_AUTHORIZER:
        return None
    authorizer = Authorizer(
        super_users(config.text(SUPER_USERS)),
        allows_without_rules=allows_without_rules(config.text(ALLOW_WITHOUT_RULES)),
    )
    authorizer.on_denied = lambda *what: log.warn("denied", described(*what))
    if audit is not None:
        authorizer.on_each_denied = audit.denied
    return authorizer


def follow(authorizer: Authorizer, metadata: Metadata, slices: Slices) -> Callable[[], None]:
    """All rules that are there, and from now on what changes, until the result is called."""
    for acl in sorted(metadata.image.acl_ids, key=attrgetter("name")):  # each behind the last one
        authorizer.add(acl)
    changed = partial(_changed, authorizer, metadata, slices)
    metadata.subscribe(changed)
    return partial(metadata.unsubscribe, changed)


def _changed(
    authorizer: Authorizer, metadata: Metadata, slices: Slices, changes: Changes
) -> Later[None] | None:
    if not changes.acls:
        return None
    return slices.later(_take(authorizer, metadata, list(changes.acls)))


def _take(authorizer: Authorizer, metadata: Metadata, acls: list[Acl]) -> Steps[None]:
    for acl in acls:
        yield from authorizer.changing(acl, is_there=acl in metadata.image.acl_ids)
        yield
