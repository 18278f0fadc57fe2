"""ReadShareGroupState, version 0: what a share coordinator knows of partitions (KIP-932)."""

from __future__ import annotations

from kafkalite.coordinators.shares.front import StateResponse
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import ReadShareGroupStateRequest


def read_share_group_state(
    context: Context, call: Call, request: ReadShareGroupStateRequest
) -> Later[StateResponse]:
    return context.shares.answer(request)
