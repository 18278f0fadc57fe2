"""Decides on elections that somebody asks for: of the preferred leader, or of any replica left.

Owns Kafka's answers for partitions that need no election or can have none.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.partition_change import Election, Target, change_partition
from kafkalite.coordinators.cluster.states import NO_LEADER
from kafkalite.coordinators.cluster.view import View, decided_in_steps, text_of
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionChangeRecord,
)

TYPES = {0: Election.PREFERRED, 1: Election.UNCLEAN}

TopicResult = ElectLeadersResponse.ReplicaElectionResult
Result = ElectLeadersResponse.PartitionResult


def elect_leaders(view: View, request: ElectLeadersRequest) -> Steps[Effects]:
    """Elects leaders of the partitions named, or of all; those fine already go unnamed then."""
    election = TYPES.get(request.election_type)
    if election is None:
        why = f"Unknown election type {request.election_type}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    records: list[PartitionChangeRecord] = []
    response = ElectLeadersResponse(error_code=Error.NONE)
    for name, indexes in _asked(view, request):
        results = yield from in_steps(
            _elect(view, name, index, election, records) for index in indexes
        )
        yield
        if request.topic_partitions is None:
            results = [each for each in results if each.error_code != Error.ELECTION_NOT_NEEDED]
        answer = TopicResult(topic=name, partition_result=results)
        response.replica_election_results.append(answer)
    return (yield from decided_in_steps(view, records, response))


def _asked(view: View, request: ElectLeadersRequest) -> list[tuple[str, list[int]]]:
    if request.topic_partitions is not None:
        return [(each.topic, each.partitions) for each in request.topic_partitions]
    return [(name, sorted(topic.partitions)) for name, topic in sorted(view.image.topics.items())]


def _elect(
    view: View, name: str, index: int, election: Election, records: list[PartitionChangeRecord]
) -> Result:
    result = Result(partition_id=index, error_code=Error.NONE, error_message=None)
    try:
        records.append(_election(view, name, index, election))
    except KafkaError as error:
        result.error_code, result.error_message = error.code, text_of(error)
    return result


def _election(view: View, name: str, index: int, election: Election) -> PartitionChangeRecord:
    if name not in view.image.topics:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    state = view.image.partition(name, index)
    if state is None:
        why = f"No such partition as {name}-{index}"
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, why)
    is_preferred = election is Election.PREFERRED
    if state.leader == state.preferred_leader if is_preferred else state.leader != NO_LEADER:
        raise KafkaError(Error.ELECTION_NOT_NEEDED)
    target = Target.of(state)
    target.election = election
    record = change_partition(view, state, target)
    if record is None:
        code = Error.PREFERRED_LEADER_NOT_AVAILABLE
        raise KafkaError(code if is_preferred else Error.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return record
