"""ReadShareGroupStateSummary, versions 0–1: where shared partitions begin (KIP-932).

Version 1 counts the records that are done with (KIP-1226).
"""

from __future__ import annotations

from kafkalite.coordinators.shares.front import StateResponse
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.messages import ReadShareGroupStateSummaryRequest


def read_share_group_state_summary(
    context: Context, call: Call, request: ReadShareGroupStateSummaryRequest
) -> Later[StateResponse]:
    return context.shares.answer(request)
