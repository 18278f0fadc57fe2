"""Apache Kafka's own tool for transactions and ours, and its reading of the coordinator's log."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.coordinators.transactions.transaction import State
from kafkalite.protocol.errors import Error
from tests.compat.brokers import Broker
from tests.compat.java_tools import JavaTools
from tests.compat.native_tools import NativeTools
from tests.compat.transactional_peer import MARKER, Peer
from tests.compat.transcript import Tools

COMMAND = "org.apache.kafka.tools.TransactionsCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
NONE = Error.NONE
PRODUCE = 12
MakePeer = Callable[[Broker], Peer]

pytestmark = pytest.mark.xdist_group("java-tools")


Rows = list[dict[str, str]]


@pytest.fixture(params=["theirs", "ours"])
def run_tool(request: pytest.FixtureRequest, tools: JavaTools) -> Callable[..., Rows]:
    """The rows of the table that a command prints, by heading."""
    chosen: Tools = tools if request.param == "theirs" else NativeTools(lambda: tools)

    def run(broker: Broker, *words: str) -> Rows:
        said = chosen.run(COMMAND, "--bootstrap-server", broker.bootstrap, *words)
        assert "rror" not in said, said
        lines = [line.rstrip("\t").split("\t") for line in said.splitlines() if "\t" in line]
        heads, *rows = [[cell.strip() for cell in line] for line in lines] or [[]]
        return [dict(zip(heads, row, strict=True)) for row in rows]

    return run


@pytest.fixture
def make_peer(unique: Callable[[str], str]) -> Iterator[Callable[[Broker], Peer]]:
    peers: list[Peer] = []

    def make(broker: Broker) -> Peer:
        peers.append(Peer(broker, unique("id")))
        return peers[-1]

    yield make
    for peer in peers:
        peer.close()


def test_transactions_command(
    broker: Broker, make_peer: MakePeer, topic: str, run_tool: Callable[..., Rows]
) -> None:
    peer = make_peer(broker)
    name = peer.transactional_id
    peer.topic(topic, 2)
    who = peer.init(timeout_ms=50_000)
    assert peer.produce(who, 0, topic, v=PRODUCE) == (NONE, 0)
    assert peer.produce(who, 0, topic, v=PRODUCE, index=1) == (NONE, 0)
    identity = {"ProducerId": str(who[0]), "TransactionState": "Ongoing"}
    listed = run_tool(broker, "list", "--transactional-id-pattern", f"{name}.*")
    assert listed == [{"TransactionalId": name, "Coordinator": "1", **identity}]
    [described] = run_tool(broker, "describe", "--transactional-id", name)
    assert int(described.pop("CurrentTransactionStartTimeMs")) <= time.time() * 1000
    assert int(described.pop("TransactionDurationMs")) >= 0
    assert sorted(described.pop("TopicPartitions").split(",")) == [f"{topic}-0", f"{topic}-1"]
    assert described == {
        "CoordinatorId": "1", "TransactionalId": name, "ProducerEpoch": str(who[1]),
        "TransactionTimeoutMs": "50000", **identity,
    }
    run_tool(broker, "forceTerminateTransaction", "--transactionalId", name)
    peer.await_state("Empty")  # what it does is what a second producer does
    assert peer.end_offset(topic, committed=True) == 2


@pytest.mark.full
def test_hanging_transaction_is_found_and_aborted(
    start_broker, make_peer: MakePeer, run_tool: Callable[..., Rows]
) -> None:
    broker: Broker = start_broker({"transaction.partition.verification.enable": "false"})
    peer = make_peer(broker)
    peer.topic("t")
    who = peer.init()
    # Nobody added the partition, so the coordinator will never end what is written there.
    assert peer.produce(who, 0, "t", v=9) == (NONE, 0)
    assert peer.end_offset("t", committed=True) == 0
    found = run_tool(broker, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "0")
    for each in found:
        each.pop("LastTimestamp")
        each.pop("Duration(min)")
    where = {"Topic": "t", "Partition": "0", "ProducerId": str(who[0])}
    assert found == [
        {**where, "ProducerEpoch": str(who[1]), "CoordinatorEpoch": "-1", "StartOffset": "0"}
    ]
    [producer] = run_tool(broker, "describe-producers", "--topic", "t", "--partition", "0")
    assert int(producer.pop("LastTimestamp")) <= time.time() * 1000
    assert producer == {
        "ProducerId": str(who[0]), "ProducerEpoch": str(who[1]), "LatestCoordinatorEpoch": "-1",
        "LastSequence": "0", "CurrentTransactionStartOffset": "0",
    }
    run_tool(broker, "abort", "--topic", "t", "--partition", "0", "--start-offset", "0")
    assert peer.log("t") == [(0, b"value"), (1, MARKER)]
    assert peer.end_offset("t", committed=True) == 2
    [producer] = run_tool(broker, "describe-producers", "--topic", "t", "--partition", "0")
    assert producer["CurrentTransactionStartOffset"] == "None"


def test_coordinators_log_is_read(
    broker: Broker, make_peer: MakePeer, topic: str, tools: JavaTools
) -> None:
    peer = make_peer(broker)
    peer.topic(topic)
    who = peer.init()
    assert peer.produce(who, 0, topic, v=PRODUCE) == (NONE, 0)
    _, after = peer.end(who, commit=True, v=5)
    peer.await_state("CompleteCommit")
    peer.end(after, commit=False, v=5)
    peer.await_state("CompleteAbort")
    peer.init()
    added = [{"topic": topic, "partitionIds": [0]}]
    expected = [
        (State.EMPTY, 0, None), (State.ONGOING, 0, added), (State.PREPARE_COMMIT, 1, added),
        (State.COMPLETE_COMMIT, 1, []), (State.PREPARE_ABORT, 2, []), (State.COMPLETE_ABORT, 2, []),
        (State.EMPTY, 3, None),
    ]
    records = records_of(tools, broker, peer.transactional_id)
    found = [
        (one["transactionStatus"], one["producerEpoch"], one["transactionPartitions"])
        for one in records
    ]
    assert found == expected
    for one in records:
        assert (one["producerId"], one["previousProducerId"]) == (who[0], who[0])
        assert one["transactionTimeoutMs"] == 60_000
        is_timed = one["transactionStatus"] != State.EMPTY
        assert (one["transactionStartTimestampMs"] > 0) == is_timed
    # The version is a tagged field, so a transaction that nobody has written in yet has none.
    assert [one.get("clientTransactionVersion") for one in records] == [None, 2, 2, 2, 2, 2, 2]


def records_of(
    tools: JavaTools, broker: Broker, transactional_id: str
) -> list[dict[str, Any]]:
    """The states of one transactional id, as `kafka-dump-log` decodes them from the files."""
    logs = sorted(broker.folder.glob("data/__transaction_state-*/*.log"))
    files = ",".join(map(str, logs))
    said = tools.run(DUMP, "--transaction-log-decoder", "--deep-iteration", "--files", files)
    assert "isvalid: false" not in said
    return [
        json.loads(line.split("payload: ")[1])["data"]
        for line in said.splitlines()
        if f'"{transactional_id}"' in line
    ]
