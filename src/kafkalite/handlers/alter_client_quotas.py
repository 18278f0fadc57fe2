"""AlterClientQuotas, versions 0–1: sets or removes quotas of users, client ids and addresses.

Version 1 is flexible (KIP-546). They hold from the next request on, also of who is connected. As
with Apache Kafka a name may stand for an address; it has to be one of somebody.
"""

from __future__ import annotations

from functools import partial
from itertools import chain

from kafkalite.coordinators.cluster.events import AlterClientQuotas
from kafkalite.coordinators.cluster.quotas import IP
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from kafkalite.quotas.host_names import HostNames, address_in

ADDRESSES_PER_STEP = 16


def alter_client_quotas(
    context: Context, call: Call, request: AlterClientQuotasRequest
) -> Later[AlterClientQuotasResponse | KafkaError] | InSteps:
    return begun(_altered(context, request))


def _altered(
    context: Context, request: AlterClientQuotasRequest
) -> Steps[Later[AlterClientQuotasResponse | KafkaError]]:
    submit = context.controller.submit
    names = yield from _to_look_up(request.entries)
    if not names:
        return submit(AlterClientQuotas(request))
    looked_up = yield from _of_nobody(context.host_names, list(names))
    return looked_up.then_ask(lambda none: submit(AlterClientQuotas(request, none)))


def _to_look_up(entries: list[AlterClientQuotasRequest.Entry]) -> Steps[dict[str, None]]:
    names: dict[str, None] = {}
    looked_at = 0
    for entry in entries:
        for entity in entry.entity:
            name = entity.entity_name
            if entity.entity_type == IP and name and address_in(name) is None:
                names[name] = None
            looked_at += 1
            if looked_at % ADDRESSES_PER_STEP == 0:
                yield
    return names


def _of_nobody(host_names: HostNames, names: list[str]) -> Steps[Later[frozenset[str]]]:
    """Those of them that have no address."""
    asked: list[Later[list[str]]] = []
    for some in pieces(names, ADDRESSES_PER_STEP):
        if asked:
            yield
        found = Later.all([host_names.look_up(name) for name in some])
        asked.append(found.map(partial(_without_address, some)))
    return Later.all(asked).map(lambda each: frozenset(chain.from_iterable(each)))


def _without_address(names: list[str], addresses: list[str | None]) -> list[str]:
    return [name for name, address in zip(names, addresses, strict=True) if address is None]
