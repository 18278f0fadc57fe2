"""A controller that broker processes come to, asked as they ask it."""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.cluster.features import SUPPORTED
from kafkalite.coordinators.cluster.quorum_leader import QuorumLeader
from kafkalite.coordinators.cluster.states import BrokerState, EndPoint
from kafkalite.protocol.messages import BrokerHeartbeatRequest, BrokerRegistrationRequest
from kafkalite.server.controllers import dispatchers_of
from kafkalite.server.limits import LimitedLog
from tests.unit.handlers.world import CLUSTER_ID, World

SESSION_MS = 9_000
FAR = 1 << 40  # as if all of the metadata were applied


class QuorumDesk:
    """Broker 1 is the controller's own; others come by requests."""

    def __init__(self, world: World) -> None:
        self.world = world
        leader = world.context.quorum = QuorumLeader(world.controller)
        leader.endpoints = [EndPoint("PLAINTEXT", "", 9093, 0)]
        dispatchers_of(world.context, LimitedLog(world.env.clock))

    def registration(self, broker_id: int, **changes: Any) -> BrokerRegistrationRequest:
        asked = BrokerRegistrationRequest
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "cluster_id": CLUSTER_ID,
            "incarnation_id": bytes([broker_id]) * 16,
            "listeners": [
                asked.Listener(
                    name="PLAINTEXT", host="h", port=9090 + broker_id, security_protocol=0
                )
            ],
            "features": [
                asked.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ],
            "rack": None,
            "log_dirs": [bytes([broker_id]) * 15 + b"\xff"],
        }
        return asked(**{**fields, **changes})

    def register(self, broker_id: int, **changes: Any) -> Any:
        return self.world.ask(self.registration(broker_id, **changes), 4)

    def beat(self, broker_id: int, **changes: Any) -> Any:
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "broker_epoch": self.broker(broker_id).epoch if self.knows(broker_id) else 0,
            "current_metadata_offset": FAR,
            "want_fence": False,
            "want_shut_down": False,
        }
        return self.world.ask(BrokerHeartbeatRequest(**{**fields, **changes}), 2)

    def enter(self, broker_id: int, **changes: Any) -> None:
        """Registers it, and has it let in."""
        assert self.register(broker_id, **changes).error_code == 0
        assert not self.beat(broker_id).is_fenced

    def knows(self, broker_id: int) -> bool:
        return broker_id in self.world.metadata.image.brokers

    def broker(self, broker_id: int) -> BrokerState:
        return self.world.metadata.image.brokers[broker_id]
