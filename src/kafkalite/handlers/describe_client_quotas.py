"""DescribeClientQuotas, versions 0–1: quotas of users, client ids and addresses.

Version 1 is flexible (KIP-546). A component asks for an entity by name, for the default one, or for
any; with `strict` an entity may have no other parts than those asked for.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.quotas import CLIENT_ID, IP, USER
from kafkalite.coordinators.cluster.states import QuotaEntity
from kafkalite.coordinators.cluster.view import text_of
from kafkalite.env.slicing import InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.stepwise import pieces
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse

EXACT, DEFAULT, ANY = 0, 1, 2
ENTITIES_PER_STEP = 32

Response = DescribeClientQuotasResponse
Component = DescribeClientQuotasRequest.Component


def describe_client_quotas(
    context: Context, call: Call, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse | InSteps:
    try:
        filters = _filters(request)
    except KafkaError as error:
        return Response(error_code=error.code, error_message=text_of(error), entries=None)
    return begun(_found(context.metadata.image.quotas, filters, is_strict=request.strict))


def _found(
    quotas: dict[QuotaEntity, dict[str, float]], filters: dict[str, Component], *, is_strict: bool
) -> Steps[DescribeClientQuotasResponse]:
    """Those of this moment, some at a time."""
    found: list[Response.Entry] = []
    for some in pieces(list(quotas.items()), ENTITIES_PER_STEP):
        found += [
            _entry(entity, values)
            for entity, values in some
            if _matches(dict(entity), filters, is_strict=is_strict)
        ]
        if len(quotas) > ENTITIES_PER_STEP:
            yield
    return Response(error_code=Error.NONE, entries=found)


def _filters(request: DescribeClientQuotasRequest) -> dict[str, Component]:
    """What is asked of each kind of part; raises for filters that make no sense."""
    filters: dict[str, Component] = {}
    for component in request.components:
        _check(component, filters)
        filters[component.entity_type] = component
    if IP in filters and len(filters) > 1:
        why = (
            "Invalid entity filter component combination. IP filter component should not be "
            "used with user or clientId filter component."
        )
        raise KafkaError(Error.INVALID_REQUEST, why)
    return filters


def _check(component: Component, filters: dict[str, Component]) -> None:
    kind, why = component.entity_type, None
    if not kind:
        why = "Invalid empty entity type."
    elif kind in filters:
        why = f"Entity type {kind} cannot appear more than once in the filter."
    elif kind not in (USER, CLIENT_ID, IP):
        raise KafkaError(Error.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    elif component.match_type == EXACT and component.match is None:
        why = "Request specified MATCH_TYPE_EXACT, but set match string to null."
    elif component.match_type in (DEFAULT, ANY) and component.match is not None:
        name = "DEFAULT" if component.match_type == DEFAULT else "SPECIFIED"
        why = f"Request specified MATCH_TYPE_{name}, but also specified a match string."
    elif component.match_type not in (EXACT, DEFAULT, ANY):
        why = f"Unknown match type {component.match_type}"
    if why is not None:
        raise KafkaError(Error.INVALID_REQUEST, why)


def _matches(
    entity: dict[str, str | None], filters: dict[str, Component], *, is_strict: bool
) -> bool:
    if is_strict and set(entity) != set(filters):
        return False
    return all(
        kind in entity and (each.match_type == ANY or entity[kind] == each.match)
        for kind, each in filters.items()
    )


def _entry(entity: QuotaEntity, values: dict[str, float]) -> Response.Entry:
    return Response.Entry(
        entity=[Response.Entity(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[Response.Value(key=key, value=value) for key, value in values.items()],
    )
