"""Client quotas, asked of both brokers: each kind of entity × key × value, and what stands then."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest
from tests.differential.setting_verdicts import Asked, Verdict

Entity = tuple[tuple[str, str | None], ...]
Op = tuple[str, float, bool]

ENTITIES: tuple[Entity, ...] = (
    (("user", "settings"),), (("user", None),), (("user", ""),),
    (("client-id", "settings"),), (("client-id", None),),
    (("user", "settings"), ("client-id", "settings")), (("user", None), ("client-id", None)),
    (("ip", "127.0.0.1"),), (("ip", None),), (("ip", "::1"),), (("ip", "1.2.3"),), (("ip", ""),),
    (("ip", "127.0.0.1"), ("user", "settings")), (("group", "settings"),), (("", "settings"),), (),
    (("user", "ж b"),), (("user", "a"), ("user", "b")), (("ip", "a b"),), (("ip", "256.1.1.1"),),
)  # fmt: skip
KEYS = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
    "connection_creation_rate", "SCRAM-SHA-256", "unknown", "", "PRODUCER_BYTE_RATE",
)  # fmt: skip
VALUES = (
    1.0, 0.0, -0.0, -1.0, 0.5, 1.0000001, 1.00001, 100.0, 2**31 - 1.0, 2.0**31, 2.0**63, 2.0**64,
    1e308, math.inf, -math.inf, math.nan, 5e-324,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class QuotaCase:
    """One entity, and what is done to it."""

    entity: Entity
    ops: tuple[Op, ...]
    validate_only: bool = False

    @property
    def steps(self) -> tuple[Op, ...]:
        return self.ops


def quota_cases() -> Iterator[QuotaCase]:
    for entity, key, value in itertools.product(ENTITIES, KEYS, VALUES):
        if value == 1.0 or entity in (ENTITIES[0], ENTITIES[7]):
            yield QuotaCase(entity, ((key, value, False),))
    for entity, key in itertools.product(ENTITIES, KEYS):
        yield QuotaCase(entity, ((key, 1.0, True),))
        yield QuotaCase(entity, ((key, 1.0, False),), validate_only=True)
    first = KEYS[0]
    for entity in ENTITIES:
        yield QuotaCase(entity, ((first, 1.0, False), (first, 2.0, False)))
        yield QuotaCase(entity, ((first, 1.0, False), (KEYS[1], 0.0, False)))
        yield QuotaCase(entity, ())


def ask_quota(broker: Asked, case: QuotaCase) -> Verdict:
    """Asks, looks, and takes back what was set."""
    (answer,) = _alter(broker, case.entity, case.ops, validate_only=case.validate_only)
    verdict = Verdict(answer.error_code, answer.error_message)
    if answer.error_code == 0 and not case.validate_only:
        verdict = Verdict(0, None, quotas_of(broker, case.entity))
        _alter(broker, case.entity, tuple((key, 1.0, True) for key, _, _ in case.ops))
    return verdict


def quotas_of(broker: Asked, entity: Entity) -> tuple[Any, ...]:
    components = [
        DescribeClientQuotasRequest.Component(
            entity_type=kind, match_type=1 if name is None else 0, match=name
        )
        for kind, name in entity
    ]
    answer = broker.ask(DescribeClientQuotasRequest(components=components, strict=True), 1)
    return tuple(
        (each.key, repr(each.value))
        for entry in answer.entries or []
        for each in sorted(entry.values, key=lambda one: one.key)
    )


def _alter(
    broker: Asked, entity: Entity, ops: tuple[Op, ...], *, validate_only: bool = False
) -> list[Any]:
    entry = AlterClientQuotasRequest.Entry(
        entity=[
            AlterClientQuotasRequest.Entity(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        ops=[
            AlterClientQuotasRequest.Op(key=key, value=value, remove=removed)
            for key, value, removed in ops
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    answers: list[Any] = broker.ask(request, 1).entries
    return answers
