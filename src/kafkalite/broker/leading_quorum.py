"""A controller that others ask over connections: what it tells of itself once it can be found.

Owns where it is found, and that the metadata names it as its controller. Does nothing where no
listener is kept for controllers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkalite.coordinators.cluster.brokers import SECURITY_PROTOCOLS
from kafkalite.coordinators.cluster.features import SUPPORTED
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.quorum_leader import QuorumLeader
from kafkalite.coordinators.cluster.records import CONTROLLER_REGISTRATION
from kafkalite.coordinators.cluster.registering_controller import RegisterController
from kafkalite.coordinators.cluster.states import EndPoint
from kafkalite.env.network import Address
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import ControllerRegistrationRequest

logger = logging.getLogger(__name__)


def lead_quorum(
    context: Context, controller: LocalController, addresses: Mapping[str, Address]
) -> None:
    """Once its listeners are open."""
    listeners = controller.config.controller_listeners
    if not listeners:
        return
    context.quorum = QuorumLeader(controller)
    told = controller.config.advertised_controllers
    context.quorum.endpoints = [
        EndPoint(
            each.name,
            told.get(each.name, each).host,
            told.get(each.name, each).port or addresses[each.name][1],
            SECURITY_PROTOCOLS[each.protocol],
        )
        for each in listeners
    ]
    if controller.metadata.image.metadata_version >= CONTROLLER_REGISTRATION:
        said = RegisterController(_registration(context, context.quorum.endpoints))
        controller.submit(said).then(_told)


def _registration(context: Context, endpoints: list[EndPoint]) -> ControllerRegistrationRequest:
    asked = ControllerRegistrationRequest
    return asked(
        controller_id=context.node_id,
        incarnation_id=context.env.random.randbytes(16),
        listeners=[
            asked.Listener(
                name=each.name, host=each.host, port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in endpoints
        ],
        features=[
            asked.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
    )  # fmt: skip


def _told(refused: KafkaError | None) -> None:
    if refused is not None:
        logger.error("the metadata does not name its controller: %s", refused)
