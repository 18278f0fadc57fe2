"""AlterClientQuotas, versions 0–1: sets or removes quotas of users, client ids and addresses.

Version 1 is flexible (KIP-546). They hold from the next request on, also of who is connected. As
with Apache Kafka a name may stand for an address; it has to be one of somebody.
"""

from __future__ import annotations

from functools import partial

from kafkalite.coordinators.cluster.events import AlterClientQuotas
from kafkalite.coordinators.cluster.quotas import IP
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkalite.quotas.host_names import HostNames, address_in


def alter_client_quotas(
    context: Context, call: Call, request: AlterClientQuotasRequest
) -> Later[AlterClientQuotasResponse | KafkaError]:
    names = [
        entity.entity_name or ""
        for entry in request.entries
        for entity in entry.entity
        if entity.entity_type == IP and not _is_told(entity.entity_name)
    ]
    submit = context.controller.submit
    if not names:
        return submit(AlterClientQuotas(request))
    looked_up = _without_address(context.host_names, list(dict.fromkeys(names)))
    return looked_up.then_ask(lambda none: submit(AlterClientQuotas(request, frozenset(none))))


def _is_told(name: str | None) -> bool:
    """Of all addresses, or of one; an empty name is refused as such."""
    return not name or address_in(name) is not None


def _without_address(host_names: HostNames, names: list[str]) -> Later[list[str]]:
    found = Later.all([host_names.look_up(name) for name in names])
    return found.map(partial(_those_of_nobody, names))


def _those_of_nobody(names: list[str], addresses: list[str | None]) -> list[str]:
    return [name for name, address in zip(names, addresses, strict=True) if address is None]
