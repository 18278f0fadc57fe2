"""BrokerRegistration, versions 0–4: a broker process enters the cluster, fenced until it says more.

Flexible (KIP-500). Versions: 1 migration from ZooKeeper, which is refused, 2 log directories, 3 the
epoch of its last life, when that ended cleanly (KIP-966), 4 features whose lowest level is 0. The
epoch that it gets is the offset of its registration.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.lifecycle import BrokerRegistration
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import leader_of
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import BrokerRegistrationRequest, BrokerRegistrationResponse


def broker_registration(
    context: Context, call: Call, request: BrokerRegistrationRequest
) -> Later[BrokerRegistrationResponse | KafkaError]:
    sessions = leader_of(context).sessions
    if request.cluster_id != context.cluster_id:
        raise KafkaError(Error.INCONSISTENT_CLUSTER_ID)

    def registered(epoch: int | KafkaError) -> BrokerRegistrationResponse | KafkaError:
        if isinstance(epoch, KafkaError):
            return epoch
        if context.metadata.image.brokers[request.broker_id].is_fenced:
            sessions.end(request.broker_id)  # of its earlier life
        return BrokerRegistrationResponse(broker_epoch=epoch)

    return context.controller.submit(BrokerRegistration(request, sessions)).map(registered)
