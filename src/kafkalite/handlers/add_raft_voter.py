"""AddRaftVoter, versions 0–1: a controller is to come to the quorum.

Flexible (KIP-853). Version 1 may be answered before that lasts (KIP-1186). The controller of this
cluster is the only voter, so it is refused.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.events import AddRaftVoter
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import check_cluster
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import AddRaftVoterRequest, AddRaftVoterResponse


def add_raft_voter(
    context: Context, call: Call, request: AddRaftVoterRequest
) -> Later[AddRaftVoterResponse | KafkaError]:
    check_cluster(context, request.cluster_id)
    return context.controller.submit(AddRaftVoter(request))
