"""Decides that a controller is known: what it can do, and where it is found.

Owns the record of that alone. Who leads is never decided by it.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.records import CONTROLLER_REGISTRATION
from kafkalite.coordinators.cluster.view import View, decided
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ControllerRegistrationRequest, RegisterControllerRecord


@dataclass(slots=True, eq=False)
class RegisterController(Event[None]):
    """A controller that says what it is."""

    request: ControllerRegistrationRequest


def register_controller(view: View, asked: RegisterController) -> Effects:
    request = asked.request
    if view.image.metadata_version < CONTROLLER_REGISTRATION:
        why = "The current MetadataVersion is too old to support controller registrations."
        raise KafkaError(Error.UNSUPPORTED_VERSION, why)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=[
            RegisterControllerRecord.EndPoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in request.listeners
        ],
        features=[
            RegisterControllerRecord.Feature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
    )
    return decided(view, [record], None)
