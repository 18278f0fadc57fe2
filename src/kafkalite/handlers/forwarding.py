"""Requests of clients that a broker has its controller answer, and who sent them (KIP-590).

Owns which requests these are, and the form in which a sender travels with one. The two that change
settings are looked at by the broker first, which alone knows its own; then it asks as itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

from kafkalite import handlers
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call, CloseConnection, Encoded
from kafkalite.handlers.context import Context
from kafkalite.handlers.sender import Sender
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import Error, KafkaError, MalformedFrame
from kafkalite.protocol.messages import (
    DefaultPrincipalData,
    EnvelopeRequest,
    EnvelopeResponse,
    RequestHeader,
    ResponseHeader,
)

SETTINGS: Final = frozenset({33, 44})  # AlterConfigs and IncrementalAlterConfigs
# CreateTopics, DeleteTopics, CreatePartitions, CreateAcls, DeleteAcls, tokens, ElectLeaders,
# reassignments, AlterClientQuotas, AlterUserScramCredentials, DescribeQuorum, UpdateFeatures,
# UnregisterBroker, AddRaftVoter, RemoveRaftVoter.
FORWARDED: Final = frozenset({
    19, 20, 37, 30, 31, 38, 39, 40, 43, 45, 46, 49, 51, 55, 57, 64, 80, 81,
})  # fmt: skip
FORWARDABLE: Final = FORWARDED | SETTINGS

Ask = Callable[[EnvelopeRequest], Later[EnvelopeResponse | KafkaError]]


def handler_for(ask: Ask) -> Callable[[int], handlers.Handler | None]:
    """The look-up of handlers for a broker whose controller is elsewhere."""

    def handler(api_key: int) -> handlers.Handler | None:
        return partial(_forward, ask) if api_key in FORWARDED else handlers.handler(api_key)

    return handler


def _forward(ask: Ask, context: Context, call: Call, request: Any) -> Later[Any]:
    header = RequestHeader(
        request_api_key=call.api_key,
        request_api_version=call.version,
        correlation_id=call.correlation_id,
        client_id=call.client_id,
    )
    header_version = headers.request_header_version(call.api_key, call.version)
    client = call.connection
    kind, _, name = client.principal.partition(":")
    principal = DefaultPrincipalData(
        type=kind, name=name, token_authenticated=client.is_by_token
    )
    envelope = EnvelopeRequest(
        request_data=codec.encode(header, header_version) + codec.encode(request, call.version),
        request_principal=bytes(2) + codec.encode(principal, 0),
        client_host_address=ip_address(client.peer_address[0].partition("%")[0]).packed,
    )
    return ask(envelope).map(partial(_unpacked, call))


def _unpacked(call: Call, answer: EnvelopeResponse | KafkaError) -> Any:
    if isinstance(answer, KafkaError):
        return answer
    if answer.error_code == Error.UNSUPPORTED_VERSION or answer.response_data is None:
        return CloseConnection(f"the controller does not answer {spec.api(call.api_key).name}")
    if answer.error_code != Error.NONE:
        return KafkaError(Error(answer.error_code))
    version = headers.response_header_version(call.api_key, call.version)
    data = bytes(answer.response_data)
    _, start = codec.decode_prefix(ResponseHeader, version, data)
    return Encoded(data[start:])


def sender_in(request: EnvelopeRequest, call: Call) -> Sender:
    """Who an envelope says has sent what is in it; raises KafkaError."""
    try:
        packed = bytes(request.request_principal or b"")
        if packed[:2] != bytes(2):
            raise MalformedFrame("no principal of version 0")
        principal = codec.decode(DefaultPrincipalData, 0, packed, 2)
    except MalformedFrame:
        raise KafkaError(Error.PRINCIPAL_DESERIALIZATION_FAILURE) from None
    try:
        host = str(ip_address(bytes(request.client_host_address)))
    except ValueError:
        raise KafkaError(Error.INVALID_REQUEST) from None
    client = call.connection
    return Sender(
        f"{principal.type}:{principal.name}", principal.token_authenticated, host,
        client.listener, client.local_address,
    )  # fmt: skip
