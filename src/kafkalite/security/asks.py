"""Which request asks whether its sender may do what: Apache Kafka's table, for every API.

Owns the table, to be read by people, and its meaning. A row is an API, how it asks, what it asks
for, and what becomes of it when the answer is no:

- `all`: the request is refused as a whole before anything else is done;
- `each`: each topic or group that it names is asked about, and refused alone;
- `own`: the API asks at a place of its own, as the row says;
- `none`: nothing is asked.

The rows `all` and `each` are the checks themselves (`server.guard`); what a request names is found
by its spec. A row may hold for some versions (`@0-3`, `@4+`) or for listeners of controllers alone
(`/controller`). Rows of one API hold in their order.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from kafkalite.env.dataclasses import dataclass
from kafkalite.security.acl import (
    CLUSTER,
    DELEGATION_TOKEN,
    GROUP,
    KINDS,
    OPERATIONS,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
)

TABLE: Final = """
Produce                     own             WRITE transactional       of a transaction; refused
Produce                     own             WRITE topic               refused alone
Fetch                       all/controller  CLUSTER_ACTION cluster
Fetch                       own             CLUSTER_ACTION cluster    of a follower; refused alone
Fetch                       own             READ topic                of a consumer; refused alone
ListOffsets                 each            DESCRIBE topic
Metadata                    own             DESCRIBE topic            named: refused; else left out
Metadata                    own             CREATE cluster            or, for each new topic:
Metadata                    own             CREATE topic              refused, not created
Metadata                    own             DESCRIBE cluster          for its operations
OffsetCommit                all             READ group
OffsetCommit                each            READ topic
OffsetFetch                 own             DESCRIBE group            refused alone
OffsetFetch                 own             DESCRIBE topic            named: refused; else left out
FindCoordinator             own             DESCRIBE group            refused alone
FindCoordinator             own             DESCRIBE transactional    refused alone
FindCoordinator             own             CLUSTER_ACTION cluster    of share groups; all refused
JoinGroup                   all             READ group
Heartbeat                   all             READ group
LeaveGroup                  all             READ group
SyncGroup                   own             READ group                after a look at its protocol
DescribeGroups              each            DESCRIBE group
ListGroups                  own             DESCRIBE cluster          or, for each group:
ListGroups                  own             DESCRIBE group            left out
SaslHandshake               none
SaslAuthenticate            none
ApiVersions                 none
CreateTopics                own             CREATE cluster            or, for each topic:
CreateTopics                own             CREATE topic              refused alone
CreateTopics                own             DESCRIBE_CONFIGS topic    its settings are not told
DeleteTopics                own             DELETE cluster            or, for each topic:
DeleteTopics                own             DESCRIBE topic            refused, there or not
DeleteTopics                own             DELETE topic              refused alone
DeleteRecords               own             DELETE topic              refused alone
InitProducerId              own             WRITE transactional       with a transactional id
InitProducerId              own             IDEMPOTENT_WRITE cluster  without one; or:
InitProducerId              own             WRITE topic               any
OffsetForLeaderEpoch        own             CLUSTER_ACTION cluster    or, for each topic:
OffsetForLeaderEpoch        own             DESCRIBE topic            refused alone
AddPartitionsToTxn          all@4+          CLUSTER_ACTION cluster
AddPartitionsToTxn          own             WRITE transactional       refused, to version 3
AddPartitionsToTxn          own             WRITE topic               none is added, to version 3
AddOffsetsToTxn             all             WRITE transactional
AddOffsetsToTxn             all             READ group
EndTxn                      all             WRITE transactional
WriteTxnMarkers             own             ALTER cluster             or:
WriteTxnMarkers             own             CLUSTER_ACTION cluster    all is refused
TxnOffsetCommit             all             WRITE transactional
TxnOffsetCommit             all             READ group
TxnOffsetCommit             each            READ topic
DescribeAcls                own             DESCRIBE cluster          all is refused
CreateAcls                  own             ALTER cluster             all is refused
DeleteAcls                  own             ALTER cluster             all is refused
DescribeConfigs             own             DESCRIBE_CONFIGS cluster  of brokers and their like
DescribeConfigs             own             DESCRIBE_CONFIGS topic    refused alone
DescribeConfigs             own             DESCRIBE_CONFIGS group    refused alone
AlterConfigs                own             ALTER_CONFIGS cluster     of brokers and their like
AlterConfigs                own             ALTER_CONFIGS topic       refused alone
AlterConfigs                own             ALTER_CONFIGS group       refused alone
AlterReplicaLogDirs         all             ALTER cluster
DescribeLogDirs             all             DESCRIBE cluster
CreatePartitions            own             ALTER topic               refused alone
CreateDelegationToken       own             CREATE_TOKENS user        for another owner; refused
RenewDelegationToken        none
ExpireDelegationToken       none
DescribeDelegationToken     own             DESCRIBE token            of others; or, of its owner:
DescribeDelegationToken     own             DESCRIBE_TOKENS user      left out
DeleteGroups                each            DELETE group
ElectLeaders                all             ALTER cluster
IncrementalAlterConfigs     own             ALTER_CONFIGS cluster     of brokers and their like
IncrementalAlterConfigs     own             ALTER_CONFIGS topic       refused alone
IncrementalAlterConfigs     own             ALTER_CONFIGS group       refused alone
AlterPartitionReassignments all             ALTER cluster
ListPartitionReassignments  all             DESCRIBE cluster
OffsetDelete                all             DELETE group
OffsetDelete                each            READ topic
DescribeClientQuotas        all             DESCRIBE_CONFIGS cluster
AlterClientQuotas           all             ALTER_CONFIGS cluster
DescribeUserScramCredentials all            DESCRIBE cluster
AlterUserScramCredentials   all             ALTER cluster
DescribeQuorum              all             DESCRIBE cluster
AlterPartition              all             CLUSTER_ACTION cluster
UpdateFeatures              all             ALTER cluster
AddRaftVoter                all             ALTER cluster
RemoveRaftVoter             all             ALTER cluster
Envelope                    all             CLUSTER_ACTION cluster
FetchSnapshot               all             CLUSTER_ACTION cluster
DescribeCluster             all/controller  ALTER cluster
DescribeCluster             own             DESCRIBE cluster          for its operations
DescribeProducers           own             READ topic                refused alone
BrokerRegistration          all             CLUSTER_ACTION cluster
BrokerHeartbeat             all             CLUSTER_ACTION cluster
UnregisterBroker            all             ALTER cluster
DescribeTransactions        own             DESCRIBE transactional    refused alone
DescribeTransactions        own             DESCRIBE topic            left out
ListTransactions            own             DESCRIBE transactional    left out
AllocateProducerIds         all             CLUSTER_ACTION cluster
ConsumerGroupHeartbeat      own             READ group                when it is served
ConsumerGroupHeartbeat      own             DESCRIBE topic            named: refused; or left out
ConsumerGroupDescribe       own             DESCRIBE group            when served; refused alone
ConsumerGroupDescribe       own             DESCRIBE topic            of its members; it is refused
ShareGroupHeartbeat         own             READ group                when it is served
ShareGroupHeartbeat         own             DESCRIBE topic            named: refused
ShareGroupDescribe          own             DESCRIBE group            when served; refused alone
ShareGroupDescribe          own             DESCRIBE topic            of its members; it is refused
ShareFetch                  own             READ group                when it is served
ShareFetch                  own             READ topic                refused alone
ShareAcknowledge            own             READ group                when it is served
ShareAcknowledge            own             READ topic                refused alone
InitializeShareGroupState   all             CLUSTER_ACTION cluster
ReadShareGroupState         all             CLUSTER_ACTION cluster
WriteShareGroupState        all             CLUSTER_ACTION cluster
DeleteShareGroupState       all             CLUSTER_ACTION cluster
ReadShareGroupStateSummary  all             CLUSTER_ACTION cluster
DescribeShareGroupOffsets   own             DESCRIBE group            refused alone
DescribeShareGroupOffsets   own             DESCRIBE topic            named: refused; else left out
AlterShareGroupOffsets      own             READ group                when it is served
AlterShareGroupOffsets      own             READ topic                refused alone
DeleteShareGroupOffsets     own             DELETE group              when it is served
DeleteShareGroupOffsets     own             READ topic                refused alone
StreamsGroupHeartbeat       own             READ group                when it is served
StreamsGroupHeartbeat       own             DESCRIBE topic            named: refused
StreamsGroupHeartbeat       own             CREATE cluster            of internal topics; or:
StreamsGroupHeartbeat       own             CREATE topic              none is created
StreamsGroupDescribe        own             DESCRIBE group            when served; refused alone
StreamsGroupDescribe        own             DESCRIBE topic            of its topology; it is refused
ControllerRegistration      all             CLUSTER_ACTION cluster
GetTelemetrySubscriptions   none
PushTelemetry               none
AssignReplicasToDirs        all             CLUSTER_ACTION cluster
ListConfigResources         all             DESCRIBE_CONFIGS cluster
DescribeTopicPartitions     own             DESCRIBE topic            named: refused; else left out
"""

ALL, EACH, OWN, NONE = "all", "each", "own", "none"
# The words of the table, which are those of the specs where a field names something.
RESOURCES: Final = {
    "topic": TOPIC,
    "group": GROUP,
    "cluster": CLUSTER,
    "transactional": TRANSACTIONAL_ID,
    "token": DELEGATION_TOKEN,
    "user": USER,
}
_NUMBERS: Final = {name: number for number, name in OPERATIONS.items()}
_NEWEST = 2**15


@dataclass(slots=True, frozen=True)
class Ask:
    """One row."""

    api: str
    how: str
    operation: int
    kind: int
    note: str
    versions: range
    is_for_controllers: bool

    @property
    def resource(self) -> str:
        """What it asks about, as specs have it."""
        return next(name for name, kind in RESOURCES.items() if kind == self.kind)

    def __str__(self) -> str:
        return f"{OPERATIONS[self.operation]} {KINDS[self.kind]}"


@cache
def asks() -> dict[str, tuple[Ask, ...]]:
    """The rows of each API."""
    rows: dict[str, list[Ask]] = {}
    for line in TABLE.strip().splitlines():
        api, how, *rest = line.split(None, 4)
        found = rows.setdefault(api, [])
        if rest:
            found.append(_row(api, how, *rest))
    return {api: tuple(found) for api, found in rows.items()}


def asks_at(api: str, how: str, version: int, *, is_controller: bool) -> list[Ask]:
    """Those rows that hold for a request at such a listener."""
    return [
        each
        for each in asks().get(api, ())
        if each.how == how
        and version in each.versions
        and (is_controller or not each.is_for_controllers)
    ]


def _row(api: str, how: str, operation: str, resource: str, note: str = "") -> Ask:
    how, _, versions = how.partition("@")
    how, _, listener = how.partition("/")
    first, _, last = versions.partition("-")
    low = int(first.rstrip("+") or 0)
    high = int(last) + 1 if last else _NEWEST
    return Ask(
        api, how, _NUMBERS[operation], RESOURCES[resource], note.strip(), range(low, high),
        listener == "controller",
    )  # fmt: skip
