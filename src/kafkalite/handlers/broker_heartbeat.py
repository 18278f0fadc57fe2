"""BrokerHeartbeat, versions 0–2: a broker process lives, and says what it wants.

Flexible (KIP-500). Versions: 1 directories that failed, 2 directories that take nothing new. A
broker is let in when it has applied its own registration; one that wants to stop is told when
nobody needs it any more.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.lifecycle import BrokerHeartbeat, Standing
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import leader_of
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse

OUT = (Standing.FENCED, Standing.SHUTDOWN_NOW)


def broker_heartbeat(
    context: Context, call: Call, request: BrokerHeartbeatRequest
) -> Later[BrokerHeartbeatResponse | KafkaError]:
    sessions = leader_of(context).sessions

    def answered(standing: Standing | KafkaError) -> BrokerHeartbeatResponse | KafkaError:
        if isinstance(standing, KafkaError):
            return standing
        if standing is Standing.SHUTDOWN_NOW:
            sessions.end(request.broker_id)
        else:
            sessions.touch(request.broker_id, request.current_metadata_offset)
        if standing is Standing.CONTROLLED_SHUTDOWN:
            sessions.begin_shut_down(request.broker_id, context.metadata.offset)
        return BrokerHeartbeatResponse(
            is_caught_up=request.current_metadata_offset >= request.broker_epoch,
            is_fenced=standing in OUT,
            should_shut_down=standing is Standing.SHUTDOWN_NOW,
        )

    return context.controller.submit(BrokerHeartbeat(request, sessions)).map(answered)
