"""What a controller decides on.

Owns the type of an event's answer, and the events that are clients' requests, as they were asked;
the others stand beside their decisions.
"""

from __future__ import annotations

from collections.abc import Set

from kafkalite.coordinators.events import Event, R_co
from kafkalite.env.dataclasses import dataclass
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafkalite.quotas.permits import Permits


class Requested(Event[R_co]):
    """What a client asked for, as it asked."""

    __slots__ = ()

    request: object


class Mutation(Event[R_co]):
    """A request that has partitions come or go, of which a client may have so many permits."""

    __slots__ = ()

    request: object
    permits: Permits | None  # None: as many as it likes

    def take(self, partitions: int) -> None:
        """Raises THROTTLING_QUOTA_EXCEEDED when it may not have so many."""
        if self.permits is not None and not self.permits.take(partitions):
            raise KafkaError(Error.THROTTLING_QUOTA_EXCEEDED)


@dataclass(slots=True, eq=False)
class CreateTopics(Mutation[CreateTopicsResponse]):
    request: CreateTopicsRequest
    permits: Permits | None = None


@dataclass(slots=True, eq=False)
class DeleteTopics(Mutation[DeleteTopicsResponse]):
    request: DeleteTopicsRequest
    permits: Permits | None = None


@dataclass(slots=True, eq=False)
class CreatePartitions(Mutation[CreatePartitionsResponse]):
    request: CreatePartitionsRequest
    permits: Permits | None = None


@dataclass(slots=True, eq=False)
class AlterClientQuotas(Event[AlterClientQuotasResponse]):
    request: AlterClientQuotasRequest
    no_hosts: Set[str] = frozenset()  # what it names as addresses and is none, nor has one


@dataclass(slots=True, eq=False)
class AlterUserScramCredentials(Requested[AlterUserScramCredentialsResponse]):
    request: AlterUserScramCredentialsRequest


@dataclass(slots=True, eq=False)
class CreateAcls(Requested[CreateAclsResponse]):
    request: CreateAclsRequest


@dataclass(slots=True, eq=False)
class DeleteAcls(Requested[DeleteAclsResponse]):
    request: DeleteAclsRequest


@dataclass(slots=True, eq=False)
class UpdateFeatures(Requested[UpdateFeaturesResponse]):
    request: UpdateFeaturesRequest


@dataclass(slots=True, eq=False)
class AddRaftVoter(Requested[AddRaftVoterResponse]):
    request: AddRaftVoterRequest


@dataclass(slots=True, eq=False)
class RemoveRaftVoter(Requested[RemoveRaftVoterResponse]):
    request: RemoveRaftVoterRequest


@dataclass(slots=True, eq=False)
class ElectLeaders(Requested[ElectLeadersResponse]):
    request: ElectLeadersRequest


@dataclass(slots=True, eq=False)
class AlterPartitionReassignments(Requested[AlterPartitionReassignmentsResponse]):
    request: AlterPartitionReassignmentsRequest


@dataclass(slots=True, eq=False)
class ListPartitionReassignments(Requested[ListPartitionReassignmentsResponse]):
    request: ListPartitionReassignmentsRequest
