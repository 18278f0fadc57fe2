"""The same requests to kafkalite and Apache Kafka side by side: those that once were answered
differently, a seeded sample of random ones, and a proof that differences are seen at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    FetchRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    UpdateFeaturesRequest,
    WriteTxnMarkersRequest,
)
from kafkalite.testing.comparison.differences import as_page
from tests.compat import brokers
from tests.differential.__main__ import converse
from tests.differential.batches import TIMESTAMP, Batch
from tests.differential.generating import THEMES, Step
from tests.differential.report import show
from tests.differential.running import Runner, Speaker

SAMPLE_ROUNDS = 6  # of each theme, of 26 requests
TOPIC = "apples-RUN"


@pytest.fixture(scope="session")
def runner(run_folder: Path) -> Iterator[Runner]:
    pair = (brokers.shared(kind, run_folder) for kind in brokers.BROKERS)
    with closing(Runner(*(Speaker(broker.host, broker.port) for broker in pair))) as runner:
        yield runner


def created() -> Step:
    topic = CreateTopicsRequest.Topic(name=TOPIC, num_partitions=2, replication_factor=1)
    return Step(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)


def fetch(session_id: int, session_epoch: int, *, forgets: bool = False) -> Step:
    partition = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchRequest.Topic(topic=TOPIC, partitions=[partition])
    forgotten = FetchRequest.ForgottenTopicsData(topic=TOPIC, partitions=[0])
    request = FetchRequest(
        session_id=session_id,
        session_epoch=session_epoch,
        max_bytes=1000,
        isolation_level=1,
        topics=[topic],
        forgotten_topics_data=[forgotten] if forgets else [],
    )
    return Step(request, 9)


def beyond_the_end() -> Step:
    step = fetch(0, -1)
    step.request.topics[0].partitions[0].fetch_offset = 40
    return step


def of_epoch(epoch: int) -> Step:
    step = beyond_the_end()
    step.request.topics[0].partitions[0].current_leader_epoch = epoch
    return step


def markers(producer_id: int, *topics: str) -> Step:
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer_id,
        producer_epoch=0,
        topics=[WriteTxnMarkersRequest.Topic(name=one, partition_indexes=[0]) for one in topics],
    )
    return Step(WriteTxnMarkersRequest(markers=[marker]), 1)


def offsets_of_no_transaction(group_id: str = "readers-RUN") -> Step:
    partition = TxnOffsetCommitRequest.Partition(partition_index=0, committed_offset=2)
    topic = TxnOffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(
        TxnOffsetCommitRequest(
            group_id=group_id, producer_id=-1, producer_epoch=-1, topics=[topic]
        ),
        3,
    )


def quorum(*topics: str) -> Step:
    partitions = [DescribeQuorumRequest.Partition(partition_index=0)]
    asked = [DescribeQuorumRequest.Topic(topic_name=one, partitions=partitions) for one in topics]
    return Step(DescribeQuorumRequest(topics=asked), 2)


def earliest() -> Step:
    partition = ListOffsetsRequest.Partition(partition_index=0, timestamp=-2)
    topic = ListOffsetsRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)


def producers(topic: str) -> Step:
    asked = DescribeProducersRequest.Topic(name=topic, partition_indexes=[0])
    return Step(DescribeProducersRequest(topics=[asked]), 0)


def init(transactional_id: str | None, **fields: Any) -> Step:
    fields = {"transaction_timeout_ms": 1000, **fields}
    return Step(InitProducerIdRequest(transactional_id=transactional_id, **fields), 3)


def created_with(name: str, value: str) -> Step:
    step = created()
    step.request.topics[0].configs = [CreateTopicsRequest.Config(name=name, value=value)]
    return step


def produced() -> Step:
    batch = Batch(((TIMESTAMP, None, b"value", ()),))
    data = ProduceRequest.PartitionData(index=0, records=batch)
    topic = ProduceRequest.TopicData(name=TOPIC, partition_data=[data])
    return Step(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9)


def joining(member_id: str, instance_id: str | None) -> Step:
    request = JoinGroupRequest(
        group_id="readers-RUN", session_timeout_ms=10_000, rebalance_timeout_ms=700,
        protocol_type="consumer", member_id=member_id, group_instance_id=instance_id,
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )
    return Step(request, 6)


def copied(topic: str) -> Step:
    asked = AlterReplicaLogDirsRequest.Topic(name=topic, partitions=[0])
    directory = AlterReplicaLogDirsRequest.Dir(path="/nowhere", topics=[asked])
    return Step(AlterReplicaLogDirsRequest(dirs=[directory]), 2)


def refused_member() -> Step:
    """It supports no protocol."""
    request = JoinGroupRequest(
        group_id="readers-RUN", session_timeout_ms=10_000, rebalance_timeout_ms=700,
        protocol_type="consumer",
    )
    return Step(request, 6)


def refused_commit() -> Step:
    partition = OffsetCommitRequest.Partition(
        partition_index=0, committed_offset=3, committed_metadata="x" * 4097
    )
    topic = OffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(OffsetCommitRequest(group_id="readers-RUN", topics=[topic]), 2)


def offset_deletion() -> Step:
    partition = OffsetDeleteRequest.Partition(partition_index=0)
    topic = OffsetDeleteRequest.Topic(name=TOPIC, partitions=[partition])
    return Step(OffsetDeleteRequest(group_id="readers-RUN", topics=[topic]), 0)


# Each once differed, until kafkalite was mended.
MENDED: dict[str, list[Step]] = {
    "beyond the end no aborted transactions are told": [created(), beyond_the_end()],
    "an epoch below zero is none": [created(), of_epoch(-2)],
    "an earliest offset of an empty log has an epoch": [created(), earliest()],
    "a topic without partitions has no offsets": [
        Step(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name=TOPIC)]), 7)
    ],
    "a session that forgets all answers what it was asked": [
        fetch(0, 0),
        fetch(1_000_000_001, 1, forgets=True),
    ],
    "markers need a producer": [created(), markers(-1, TOPIC)],
    "markers need a topic before they need a producer": [markers(-1, "nix-RUN")],
    "markers of no partition are not answered": [markers(5)],
    "offsets need a transactional id": [created(), offsets_of_no_transaction()],
    "offsets need a topic before they need a group": [offsets_of_no_transaction("")],
    "half an identity is none": [init(None, producer_epoch=0), init("till-RUN", producer_id=3)],
    "a refused producer has no epoch": [init("till-RUN", transaction_timeout_ms=0)],
    "a quorum is asked for alone": [
        quorum("nix-RUN"),
        quorum(),
        quorum("__cluster_metadata", "nix-RUN"),
    ],
    "producers of an impossible topic": [producers("no good!RUN")],
    "producers of a topic that is not there": [producers("nix-RUN")],
    "a resource of no known type refuses the whole request": [
        Step(
            DescribeConfigsRequest(resources=[
                DescribeConfigsRequest.Resource(resource_type=kind, resource_name=TOPIC)
                for kind in (2, 99)
            ]),
            4,
        )
    ],
    "a topic without a name or an id": [
        Step(MetadataRequest(topics=[MetadataRequest.Topic(name=None)]), version)
        for version in (12, 13)
    ],
    "a topic without a name among topics": [
        Step(
            DescribeTopicPartitionsRequest(
                topics=[DescribeTopicPartitionsRequest.Topic(name=one) for one in ("", "nix-RUN")]
            ),
            0,
        )
    ],
    "a name that a copy's directory has no room for": [copied("x" * 213), copied("x" * 214)],
    "the first version of UpdateFeatures only raises": [
        Step(
            UpdateFeaturesRequest(feature_updates=[
                UpdateFeaturesRequest.FeatureUpdate(
                    feature="transaction.version", max_version_level=1, allow_downgrade=True
                )
            ]),
            0,
        )
    ],
    "all replicas are enough": [created_with("min.insync.replicas", "2"), produced()],
    "a pending member has no instance id": [
        joining("", None),
        joining("member-1", "static-RUN"),
    ],
    "an election among no partitions": [
        Step(ElectLeadersRequest(election_type=2, topic_partitions=[], timeout_ms=1000), 1)
    ],
    "a group that only a refused commit has named": [
        created(),
        refused_commit(),
        Step(DeleteGroupsRequest(groups_names=["readers-RUN"]), 1),
    ],
    "a group that only a refused member has named": [
        refused_member(),
        Step(DescribeGroupsRequest(groups=["readers-RUN"]), 5),
        Step(ListGroupsRequest(), 4),
        offset_deletion(),
        Step(DeleteGroupsRequest(groups_names=["readers-RUN"]), 2),
        Step(DescribeGroupsRequest(groups=["readers-RUN"]), 5),
    ],
    "no reassignments": [Step(AlterPartitionReassignmentsRequest(), version) for version in (0, 1)],
}


@pytest.mark.parametrize("name", list(MENDED))
def test_what_was_mended_stays_mended(runner: Runner, name: str) -> None:
    outcome = runner.run(MENDED[name])
    assert outcome.differences == [], show(outcome)


def test_protocol_that_is_named_twice_disturbs_nobody(runner: Runner) -> None:
    """Apache Kafka never answers such a member; kafkalite has to, and go on with its groups."""
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="twice",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=700,
        protocol_type="consumer",
        protocols=[protocol, protocol],
    )
    ours, _ = runner.sides
    answer = ours.ask(request, 1)
    assert (answer.error_code, answer.protocol_name) == (0, "range")


@pytest.mark.parametrize("theme", list(THEMES))
def test_random_requests_are_answered_alike(runner: Runner, theme: str) -> None:
    asked = 0
    for number in range(SAMPLE_ROUNDS):
        seed = f"sample/{number}"
        outcome = converse(runner, seed, theme)
        if outcome.differences:  # a busy machine's timing is not seen again
            outcome = converse(runner, seed, theme)
        asked += len(outcome.steps)
        assert outcome.differences == [], f"{seed}\n{show(outcome)}"
    assert asked > 20 * SAMPLE_ROUNDS


# --- planted differences --------------------------------------------------------------------------


class Liar(Speaker):
    """A side that tells the truth, but for one field of one API."""

    def __init__(self, side: Speaker, api: str, field: str, value: Any) -> None:
        super().__init__(side.host, side.port)
        self.api, self.field, self.value = api, field, value

    def receive(self, step: Step) -> Any:
        answer = super().receive(step)
        if step.api == self.api and isinstance(answer, dict):
            plant(answer, self.field, self.value)
        return answer


def plant(view: Any, field: str, value: Any) -> None:
    for each in view if isinstance(view, list) else view.values():
        if isinstance(each, dict | list):
            plant(each, field, value)
    if isinstance(view, dict) and field in view:
        view[field] = value


PLANTED = [
    ("Produce", "base_offset", 99),
    ("Fetch", "high_watermark", 17),
    ("Metadata", "leader_epoch", 5),
    ("OffsetFetch", "metadata", "not what was written"),
    ("CreateTopics", "error_code", "TOPIC_ALREADY_EXISTS"),
]


@pytest.mark.parametrize(("api", "field", "value"), PLANTED)
def test_a_planted_difference_is_found(runner: Runner, api: str, field: str, value: Any) -> None:
    ours, theirs = runner.sides
    themes = {"OffsetFetch": "classic groups", "Metadata": "topics"}
    with closing(Liar(ours, api, field, value)) as liar:
        lied_to = Runner(liar, theirs)
        outcomes = (converse(lied_to, f"planted/{number}", themes.get(api, "log"))
                    for number in range(10))
        assert any(
            api == each.api and field in each.path
            for outcome in outcomes
            for each in outcome.differences
        )


# --- the table ------------------------------------------------------------------------------------


def test_the_page_says_what_the_table_says() -> None:
    page = Path(__file__).parents[2] / "docs" / "differences.md"
    assert page.read_text(encoding="utf-8") == as_page(), "write it: see the page's first lines"
