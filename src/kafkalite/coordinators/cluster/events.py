"""What a controller decides on.

Owns the type of an event's answer, and the events that are clients' requests, as they were asked;
the others stand beside their decisions.
"""

from __future__ import annotations

from kafkalite.coordinators.events import Event, R_co
from kafkalite.env.dataclasses import dataclass
from kafkalite.protocol.messages import (
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
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


class Requested(Event[R_co]):
    """What a client asked for, as it asked."""

    __slots__ = ()

    request: object


@dataclass(slots=True, eq=False)
class CreateTopics(Requested[CreateTopicsResponse]):
    request: CreateTopicsRequest


@dataclass(slots=True, eq=False)
class DeleteTopics(Requested[DeleteTopicsResponse]):
    request: DeleteTopicsRequest


@dataclass(slots=True, eq=False)
class CreatePartitions(Requested[CreatePartitionsResponse]):
    request: CreatePartitionsRequest


@dataclass(slots=True, eq=False)
class AlterClientQuotas(Requested[AlterClientQuotasResponse]):
    request: AlterClientQuotasRequest


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
class ElectLeaders(Requested[ElectLeadersResponse]):
    request: ElectLeadersRequest


@dataclass(slots=True, eq=False)
class AlterPartitionReassignments(Requested[AlterPartitionReassignmentsResponse]):
    request: AlterPartitionReassignmentsRequest


@dataclass(slots=True, eq=False)
class ListPartitionReassignments(Requested[ListPartitionReassignmentsResponse]):
    request: ListPartitionReassignmentsRequest
