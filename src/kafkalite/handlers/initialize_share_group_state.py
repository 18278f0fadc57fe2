"""InitializeShareGroupState, version 0: has a share coordinator begin with partitions (KIP-932)."""

from __future__ import annotations

from kafkalite.coordinators.shares.front import StateResponse
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import InitializeShareGroupStateRequest


def initialize_share_group_state(
    context: Context, call: Call, request: InitializeShareGroupStateRequest
) -> Later[StateResponse]:
    return context.shares.answer(request)
