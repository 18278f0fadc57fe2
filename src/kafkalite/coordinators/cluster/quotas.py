"""Decides on client quotas: of users, client ids and addresses.

Owns Kafka's rules for which entities there are and which values they may have.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from kafkalite.config import Kind
from kafkalite.coordinators.cluster.events import AlterClientQuotas
from kafkalite.coordinators.cluster.image import quota_entity
from kafkalite.coordinators.cluster.states import QuotaEntity
from kafkalite.coordinators.cluster.view import View, decided_in_steps, text_of
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import ELEMENTS_PER_STEP, LOOKS_PER_STEP, Steps, emptied, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    ClientQuotaRecord,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
USER_AND_CLIENT_KEYS: Final = {
    "producer_byte_rate": Kind.LONG,
    "consumer_byte_rate": Kind.LONG,
    "request_percentage": Kind.DOUBLE,
    "controller_mutation_rate": Kind.DOUBLE,
}
IP_KEYS: Final = {"connection_creation_rate": Kind.INT}
LARGEST: Final = {Kind.INT: 2**31 - 1, Kind.LONG: 2**63 - 1}


def alter_client_quotas(view: View, event: AlterClientQuotas) -> Steps[Effects]:
    """Sets and removes quotas; an entity is changed whole or not at all."""
    request = event.request
    answers: dict[QuotaEntity, AlterClientQuotasResponse.Entry] = {}
    changes: list[ClientQuotaRecord] = []
    for number, entry in enumerate(request.entries, 1):
        changes += yield from _change(view, entry, answers, event.no_hosts)
        if number % ELEMENTS_PER_STEP == 0:
            yield
    response = AlterClientQuotasResponse(entries=list(answers.values()))
    yield from emptied(answers)
    return (yield from decided_in_steps(view, () if request.validate_only else changes, response))


def _change(
    view: View,
    entry: AlterClientQuotasRequest.Entry,
    answers: dict[QuotaEntity, AlterClientQuotasResponse.Entry],
    no_hosts: Set[str],
) -> Steps[list[ClientQuotaRecord]]:
    # A kind that is given twice counts as it was given last.
    parts = {each.entity_type: each for each in entry.entity}
    entry.entity = list(parts.values())
    answer = yield from _answer(entry)
    entity = quota_entity(entry.entity)
    is_twin = entity in answers
    answer = answers.setdefault(entity, answer)
    if len(parts) > LOOKS_PER_STEP:
        yield
    try:
        if (yield from _has_twins(entry.ops)) or is_twin:
            # What was said of it first is done all the same.
            why = f"Ignoring duplicate entity {_shown(entry)}"
            raise KafkaError(Error.INVALID_REQUEST, why)
        return (yield from _alter_entity(view, entry, entity, no_hosts))
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, text_of(error)
        return []


def _has_twins(ops: list[AlterClientQuotasRequest.Op]) -> Steps[bool]:
    keys: dict[str, None] = {}
    for number, op in enumerate(ops, 1):
        keys[op.key] = None
        if number % LOOKS_PER_STEP == 0:
            yield
    is_one_twice = len(keys) < len(ops)
    yield from emptied(keys)
    return is_one_twice


def _answer(entry: AlterClientQuotasRequest.Entry) -> Steps[AlterClientQuotasResponse.Entry]:
    entity = yield from in_steps(
        AlterClientQuotasResponse.Entity(entity_type=each.entity_type, entity_name=each.entity_name)
        for each in entry.entity
    )
    return AlterClientQuotasResponse.Entry(
        error_code=Error.NONE, error_message=None, entity=entity
    )


def _shown(entry: AlterClientQuotasRequest.Entry) -> str:
    """An entity as Java writes it, in the order of its hashes."""
    names = {each.entity_type: each.entity_name for each in entry.entity}
    kinds = sorted(names, key=lambda kind: (CLIENT_ID, USER, IP, kind).index(kind))
    parts = [f"{kind}={'null' if names[kind] is None else names[kind]}" for kind in kinds]
    return f"ClientQuotaEntity(entries={{{', '.join(parts)}}})"


def _alter_entity(
    view: View, entry: AlterClientQuotasRequest.Entry, entity: QuotaEntity, no_hosts: Set[str]
) -> Steps[list[ClientQuotaRecord]]:
    allowed = _keys_of(entity, no_hosts)
    current = view.image.quotas.get(entity, {})
    records = []
    for number, op in enumerate(entry.ops, 1):
        if number % LOOKS_PER_STEP == 0:
            yield
        if op.remove and op.key in current:
            records.append(_record(entity, op.key, 0.0, is_removed=True))
        elif not op.remove:
            _check_value(allowed, op.key, op.value)
            if current.get(op.key) != op.value:
                records.append(_record(entity, op.key, op.value, is_removed=False))
    return records


def _record(entity: QuotaEntity, key: str, value: float, *, is_removed: bool) -> ClientQuotaRecord:
    parts = [ClientQuotaRecord.Entity(entity_type=kind, entity_name=name) for kind, name in entity]
    return ClientQuotaRecord(entity=parts, key=key, value=value, remove=is_removed)


def _keys_of(entity: QuotaEntity, no_hosts: Set[str]) -> dict[str, Kind]:
    """The keys an entity may have; raises INVALID_REQUEST for what is no entity."""
    kinds = [kind for kind, _ in entity]
    why = None
    if not entity:
        why = "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            why = f"Unhandled client quota entity type: {kind}"
        elif name == "":
            why = f"Empty {kind} not supported"
    if why is None and IP in kinds:
        address = dict(entity)[IP]
        if len(kinds) > 1:
            # The missing blank is Kafka's.
            why = (
                "Invalid quota entity combination, IP entity should"
                "not be combined with User or ClientId"
            )
        elif address is not None and address in no_hosts:
            why = f"{address} is not a valid IP or resolvable host."
    if why is not None:
        raise KafkaError(Error.INVALID_REQUEST, why)
    return IP_KEYS if IP in kinds else USER_AND_CLIENT_KEYS


def _check_value(allowed: dict[str, Kind], key: str, value: float) -> None:
    kind = allowed.get(key)
    why = None
    if kind is None:
        why = f"Invalid configuration key {key}"
    elif value <= 0:  # not so what is no number: Kafka takes it
        why = f"Quota {key} must be greater than 0"
    elif kind is not Kind.DOUBLE and value > float(LARGEST[kind]):
        article = "an" if kind is Kind.INT else "a"
        why = f"Proposed value for {key} is too large for {article} {kind.name}."
    elif kind is not Kind.DOUBLE and abs(value % 1.0) > 1e-6:
        why = f"{key} cannot be a fractional value."
    if why is not None:
        raise KafkaError(Error.INVALID_REQUEST, why)
