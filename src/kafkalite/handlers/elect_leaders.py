"""ElectLeaders, versions 0–2: elects the preferred, or any living, replica as leader.

Versions: 1 kinds of elections (KIP-460), 2 flexible. Without a list all partitions are meant, and
those that need no election are not named in the reply.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.controller import is_refusal
from kafkalite.coordinators.cluster.events import ElectLeaders
from kafkalite.coordinators.cluster.view import text_of
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ElectLeadersRequest, ElectLeadersResponse


def elect_leaders(
    context: Context, call: Call, request: ElectLeadersRequest
) -> Later[ElectLeadersResponse | KafkaError | InSteps]:
    if request.topic_partitions == []:  # not null, which means all: nothing is asked for
        return Later.of(ElectLeadersResponse(error_code=Error.NONE))

    def answered(
        answer: ElectLeadersResponse | KafkaError,
    ) -> ElectLeadersResponse | KafkaError | InSteps:
        return begun(_all_refused(request, answer)) if is_refusal(answer) else answer

    return context.controller.submit(ElectLeaders(request)).map(answered)


def _all_refused(
    request: ElectLeadersRequest, error: KafkaError
) -> Steps[ElectLeadersResponse]:
    response = ElectLeadersResponse(error_code=error.code)
    for topic in request.topic_partitions or ():
        results = yield from in_steps(
            ElectLeadersResponse.PartitionResult(
                partition_id=index, error_code=error.code, error_message=text_of(error)
            )
            for index in topic.partitions
        )
        answer = ElectLeadersResponse.ReplicaElectionResult(
            topic=topic.topic, partition_result=results
        )
        response.replica_election_results.append(answer)
        if len(response.replica_election_results) % ELEMENTS_PER_STEP == 0:
            yield
    return response
