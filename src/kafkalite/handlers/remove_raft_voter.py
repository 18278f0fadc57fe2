"""RemoveRaftVoter, version 0: a controller is to go from the quorum.

Flexible (KIP-853). The controller of this cluster is the only voter, so it is refused.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import RemoveRaftVoter
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import check_cluster
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def remove_raft_voter(
    context: Context, call: Call, request: RemoveRaftVoterRequest
) -> Later[RemoveRaftVoterResponse | KafkaError]:
    check_cluster(context, request.cluster_id)
    return context.controller.submit(RemoveRaftVoter(request))
