"""The blocks of producer ids that a broker is given.

Owns how the controller is asked for one. A block comes when it lasts, so that nobody is given one
of its ids again after a power cut.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.absence import AWAY
from kafkalite.coordinators.cluster.brokers import AllocateProducerIds
from kafkalite.coordinators.cluster.controller import Controller
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError


class BrokerIds:
    """Asks for one broker."""

    def __init__(self, metadata: Metadata, controller: Controller, node_id: int) -> None:
        self._metadata = metadata
        self._controller = controller
        self._node_id = node_id

    def allocate(self) -> Later[range | KafkaError]:
        """A block; while nobody leads the metadata log, clients are to ask again."""
        if self._metadata.controller_id is None:
            return Later.of(KafkaError(Error.COORDINATOR_LOAD_IN_PROGRESS, AWAY))
        return self._controller.submit(AllocateProducerIds(self._node_id))
