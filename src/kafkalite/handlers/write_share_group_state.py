"""WriteShareGroupState, versions 0–1: has a share coordinator keep what members did (KIP-932).

Version 1 counts the records that are done with (KIP-1226).
"""

from __future__ import annotations

from kafkalite.coordinators.shares.front import StateResponse
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import WriteShareGroupStateRequest


def write_share_group_state(
    context: Context, call: Call, request: WriteShareGroupStateRequest
) -> Later[StateResponse]:
    return context.shares.answer(request)
