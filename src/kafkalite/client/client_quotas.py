"""Quotas of users, client ids and addresses, as a cluster keeps them.

Owns how an entity is said in requests: kinds with names, where a name of None means those that have
no quota of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkalite.client.admin import Admin, check
from kafkalite.protocol.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest

KINDS = {"user": "user", "client": "client-id", "ip": "ip"}  # as people and as requests say them
EXACT, DEFAULT, ANY = 0, 1, 2  # how the name of an entity is matched

Entity = tuple[tuple[str, str | None], ...]
Quotas = dict[Entity, dict[str, float]]


def component(kind: str, name: str | None, match_type: int) -> Any:
    return DescribeClientQuotasRequest.Component(
        entity_type=kind, match_type=match_type, match=name
    )


def quotas_in(answer: Any) -> Quotas:
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or []
    }


def alteration(
    entity: Iterable[tuple[str, str | None]], changed: Mapping[str, float],
    removed: Iterable[str], *, is_tried: bool = False,
) -> AlterClientQuotasRequest:  # fmt: skip
    op = AlterClientQuotasRequest.Op
    part = AlterClientQuotasRequest.Entity
    entry = AlterClientQuotasRequest.Entry(
        entity=[part(entity_type=kind, entity_name=name) for kind, name in entity],
        ops=[
            *(op(key=key, value=changed[key], remove=False) for key in changed),
            *(op(key=key, value=0.0, remove=True) for key in removed),
        ],
    )
    return AlterClientQuotasRequest(entries=[entry], validate_only=is_tried)


def quotas(admin: Admin, entity: Mapping[str, str | None]) -> Quotas:
    """Those that concern these, whatever else they concern; all without any."""
    components = [
        component(KINDS[kind], name, DEFAULT if name is None else EXACT)
        for kind, name in entity.items()
    ]
    answer = admin.ask(DescribeClientQuotasRequest(components=components, strict=False))
    check("the quotas cannot be had", answer)
    return quotas_in(answer)


def alter(
    admin: Admin, what: str, entity: Mapping[str, str | None], changed: Mapping[str, float],
    removed: Iterable[str] = (), *, is_tried: bool = False,
) -> None:  # fmt: skip
    """is_tried: it is only asked whether it would be done."""
    parts = [(KINDS[kind], name) for kind, name in entity.items()]
    request = alteration(parts, changed, removed, is_tried=is_tried)
    [entry] = admin.ask(request).entries
    check(f"the quotas of {what} are not changed", entry)
