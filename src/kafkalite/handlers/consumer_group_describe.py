"""ConsumerGroupDescribe, versions 0–1: state and members of consumer groups (KIP-848).

Version 1 tells which protocol each member speaks.
"""

from __future__ import annotations

from typing import Any

from kafkalite.coordinators.groups.events import DescribeConsumerGroups
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, outcome_of
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import (
    ALL_GROUP_OPERATIONS,
    ask_by_shard,
    reply_with,
    serves_consumer_groups,
)
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

Described = ConsumerGroupDescribeResponse.Group


def consumer_group_describe(
    context: Context, call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | InSteps | Later[InSteps]:
    if not serves_consumer_groups(context):
        code = Error.UNSUPPORTED_VERSION
        groups = [Described(group_id=one, error_code=code) for one in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=groups)
    named = [group_id for group_id in request.group_ids if group_id]
    nameless = len(request.group_ids) - len(named)

    def respond(answers: list[tuple[list[str], Any]]) -> Steps[ConsumerGroupDescribeResponse]:
        response = ConsumerGroupDescribeResponse(
            groups=[Described(error_code=Error.INVALID_GROUP_ID) for _ in range(nameless)]
        )
        for ids, answer in answers:
            response.groups += (
                [Described(group_id=one, error_code=answer.code) for one in ids]
                if isinstance(answer, KafkaError)
                else (yield from outcome_of(answer))
            )
        if request.include_authorized_operations:
            for group in response.groups:
                if group.error_code == Error.NONE:
                    group.authorized_operations = ALL_GROUP_OPERATIONS
        return response

    asked = ask_by_shard(context, named, DescribeConsumerGroups)
    return reply_with(asked, lambda answers: InSteps(respond(answers)))
