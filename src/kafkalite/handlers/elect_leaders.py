"""ElectLeaders, versions 0–2: elects the preferred, or any living, replica as leader.

Versions: 1 kinds of elections (KIP-460), 2 flexible. Without a list all partitions are meant, and
those that need no election are not named in the reply.
"""

from __future__ import annotations

from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import ElectLeadersRequest, ElectLeadersResponse


def elect_leaders(
    context: Context, call: Call, request: ElectLeadersRequest
) -> Later[ElectLeadersResponse]:
    later: Later[ElectLeadersResponse] = context.cluster.submit(request)
    return later
