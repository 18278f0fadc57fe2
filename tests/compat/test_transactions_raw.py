"""Transactions by hand, on both brokers: what happens when a producer, or the network, is wrong.

`old` and `new` name the two flows: before transaction version 2 a producer adds partitions itself
and keeps its epoch, from version 2 on (KIP-890) they join by being written to and the epoch rises
with every end.
"""

import time
from collections.abc import Callable, Iterator

import pytest

from kafkalite.protocol.errors import Error
from tests.compat.brokers import Broker
from tests.compat.transactional_peer import GROUP_KEY, MARKER, Peer

NONE = Error.NONE
OLD_PRODUCE, OLD_END = 11, 4
NEW_PRODUCE, NEW_END, NEW_COMMIT = 12, 5, 5
MakePeer = Callable[..., Peer]


@pytest.fixture
def make_peer(broker: Broker, unique: Callable[[str], str]) -> Iterator[MakePeer]:
    peers: list[Peer] = []

    def make(transactional_id: str | None = None) -> Peer:
        peers.append(Peer(broker, transactional_id or unique("transaction")))
        return peers[-1]

    yield make
    for peer in peers:
        peer.close()


@pytest.fixture
def peer(make_peer: MakePeer) -> Peer:
    return make_peer()


@pytest.fixture
def made(peer: Peer, topic: str) -> str:
    """A topic that exists."""
    return peer.topic(topic)


# --- the course of a transaction ------------------------------------------------------------------


def test_old_flow_keeps_its_epoch(peer: Peer, made: str) -> None:
    who = peer.init()
    for sequence in (0, 1):
        assert peer.add(who, made) is NONE
        assert peer.produce(who, sequence, made) == (NONE, 2 * sequence)
        assert peer.end(who, commit=True) == (NONE, (-1, -1))
        peer.await_state("CompleteCommit")
    assert peer.epoch() == who[1]
    assert peer.log(made) == [(0, b"value"), (1, MARKER), (2, b"value"), (3, MARKER)]


def test_new_flow_raises_the_epoch_with_each_end(peer: Peer, made: str) -> None:
    who = peer.init()
    for turn, commit in enumerate((True, False, True)):
        assert peer.produce(who, 0, made, v=NEW_PRODUCE) == (NONE, 2 * turn)
        error, after = peer.end(who, commit=commit, v=NEW_END)
        assert (error, after) == (NONE, (who[0], who[1] + 1))
        who = after
    peer.await_state("CompleteCommit")
    assert peer.epoch() == who[1]


def test_partition_without_data_gets_its_marker(peer: Peer, made: str) -> None:
    who = peer.init()
    for turn in range(2):
        assert peer.add(who, made) is NONE
        assert peer.end(who, commit=True)[0] is NONE
        peer.await_state("CompleteCommit")
        assert peer.log(made) == [(each, MARKER) for each in range(turn + 1)]


def test_transaction_over_partitions(peer: Peer, topic: str) -> None:
    peer.topic(topic, 3)
    who = peer.init()
    for index in range(3):
        assert peer.produce(who, 0, topic, v=NEW_PRODUCE, index=index) == (NONE, 0)
    assert [peer.end_offset(topic, committed=True, index=each) for each in range(3)] == [0, 0, 0]
    assert peer.end(who, commit=True, v=NEW_END)[0] is NONE
    peer.await_state("CompleteCommit")
    assert [peer.end_offset(topic, committed=True, index=each) for each in range(3)] == [2, 2, 2]


def test_what_is_stable_follows_the_oldest_open_transaction(
    make_peer: MakePeer, topic: str
) -> None:
    first, second = make_peer(), make_peer()
    first.topic(topic)
    who, other = first.init(), second.init()
    assert first.produce(who, 0, topic, b"a", v=NEW_PRODUCE) == (NONE, 0)
    assert second.produce(other, 0, topic, b"b", v=NEW_PRODUCE) == (NONE, 1)
    assert second.end(other, commit=True, v=NEW_END)[0] is NONE
    second.await_state("CompleteCommit")
    assert first.end_offset(topic, committed=True) == 0
    assert first.end_offset(topic, committed=False) == 3
    assert first.values(topic, committed=True) == []
    assert sorted(first.open_since(topic)) == [-1, 0]
    assert first.end(who, commit=False, v=NEW_END)[0] is NONE
    first.await_state("CompleteAbort")
    assert first.end_offset(topic, committed=True) == 4
    fetched = first.fetch(topic, committed=True)
    assert (fetched.last_stable_offset, fetched.high_watermark) == (4, 4)
    aborted = [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions or ()]
    assert aborted == [(who[0], 0)]
    assert first.fetch(topic, committed=False).aborted_transactions is None


def test_describe_tells_the_course(peer: Peer, made: str) -> None:
    who = peer.init(timeout_ms=54_321)
    found = peer.describe()
    assert (found.transaction_state, found.transaction_start_time_ms) == ("Empty", -1)
    assert (found.producer_id, found.producer_epoch) == who
    assert found.transaction_timeout_ms == 54_321
    assert peer.produce(who, 0, made, v=NEW_PRODUCE) == (NONE, 0)
    found = peer.describe()
    assert found.transaction_state == "Ongoing"
    assert found.transaction_start_time_ms > 0
    assert [(each.topic, each.partitions) for each in found.topics] == [(made, [0])]
    peer.end(who, commit=False, v=NEW_END)
    peer.await_state("CompleteAbort")
    assert peer.describe().topics == []


# --- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_old_end_may_be_repeated(peer: Peer, made: str, commit: bool) -> None:
    who = peer.init()
    peer.add(who, made)
    assert peer.end(who, commit=commit)[0] is NONE
    assert peer.end(who, commit=commit)[0] is NONE
    assert peer.end(who, commit=not commit)[0] is Error.INVALID_TXN_STATE


@pytest.mark.parametrize("commit", [True, False])
def test_old_end_of_nothing_is_refused(peer: Peer, commit: bool) -> None:
    who = peer.init()
    assert peer.end(who, commit=commit)[0] is Error.INVALID_TXN_STATE


@pytest.mark.parametrize("commit", [True, False])
def test_new_end_may_be_repeated(peer: Peer, made: str, commit: bool) -> None:
    who = peer.init()
    peer.produce(who, 0, made, v=NEW_PRODUCE)
    after = (NONE, (who[0], who[1] + 1))
    assert peer.end(who, commit=commit, v=NEW_END) == after
    assert peer.end(who, commit=commit, v=NEW_END) == after
    assert peer.end(who, commit=not commit, v=NEW_END)[0] is Error.INVALID_TXN_STATE


def test_new_abort_of_nothing_raises_the_epoch(peer: Peer, made: str) -> None:
    who = peer.init()
    assert peer.end(who, commit=True, v=NEW_END)[0] is Error.INVALID_TXN_STATE
    for _ in range(2):
        error, after = peer.end(who, commit=False, v=NEW_END)
        assert (error, after) == (NONE, (who[0], who[1] + 1))
        peer.await_state("CompleteAbort")
        who = after
    assert peer.end(who, commit=True, v=NEW_END)[0] is Error.INVALID_TXN_STATE
    assert peer.produce(who, 0, made, v=NEW_PRODUCE) == (NONE, 0)
    assert peer.end(who, commit=True, v=NEW_END)[0] is NONE


def test_late_end_cannot_end_the_next_transaction(peer: Peer, made: str) -> None:
    """The request that Jepsen found torn transactions with: it is of the epoch before."""
    who = peer.init()
    peer.produce(who, 0, made, v=NEW_PRODUCE)
    _, after = peer.end(who, commit=False, v=NEW_END)
    assert peer.produce(after, 0, made, v=NEW_PRODUCE)[0] is NONE
    assert peer.end(who, commit=False, v=NEW_END)[0] is Error.PRODUCER_FENCED
    assert peer.end(who, commit=True, v=NEW_END)[0] is Error.PRODUCER_FENCED
    assert peer.describe().transaction_state == "Ongoing"


def test_end_of_another_producer_is_refused(peer: Peer, made: str) -> None:
    who = peer.init()
    peer.produce(who, 0, made, v=NEW_PRODUCE)
    for version, fenced in ((1, Error.INVALID_PRODUCER_EPOCH), (4, Error.PRODUCER_FENCED)):
        assert peer.end((who[0], who[1] + 1), commit=True, v=version)[0] is fenced
    assert peer.end((who[0] + 1, who[1]), commit=True)[0] is Error.INVALID_PRODUCER_ID_MAPPING
    assert peer.end((who[0], who[1] + 1), commit=True, v=5)[0] is Error.PRODUCER_FENCED


def test_end_under_an_unknown_id_is_refused(make_peer: MakePeer, unique) -> None:
    unknown = make_peer()
    assert unknown.end((1, 0), commit=True)[0] is Error.INVALID_PRODUCER_ID_MAPPING
    assert unknown.describe().error_code == Error.TRANSACTIONAL_ID_NOT_FOUND


# --- fencing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("produce", "end", "refused"),
    [(OLD_PRODUCE, OLD_END, Error.PRODUCER_FENCED), (NEW_PRODUCE, NEW_END, Error.PRODUCER_FENCED)],
    ids=["old", "new"],
)
def test_second_producer_fences_the_first(
    make_peer: MakePeer, topic: str, produce: int, end: int, refused: Error
) -> None:
    zombie = make_peer()
    zombie.topic(topic)
    who = zombie.init()
    if produce == OLD_PRODUCE:
        assert zombie.add(who, topic) is NONE
    assert zombie.produce(who, 0, topic, b"lost", v=produce) == (NONE, 0)
    heir = make_peer(zombie.transactional_id)
    assert heir.try_init()[0] is Error.CONCURRENT_TRANSACTIONS
    inherited = heir.init()
    assert inherited[0] == who[0]
    assert inherited[1] == who[1] + 2  # one to abort under, one to go on with
    assert zombie.produce(who, 1, topic, v=produce)[0] is Error.INVALID_PRODUCER_EPOCH
    assert zombie.add(who, topic) is Error.PRODUCER_FENCED
    assert zombie.end(who, commit=True, v=end)[0] is refused
    assert zombie.try_init(had=who)[0] is Error.PRODUCER_FENCED
    assert zombie.log(topic) == [(0, b"lost"), (1, MARKER)]
    assert zombie.add_offsets(who, "group") is Error.PRODUCER_FENCED


def test_fencing_by_epoch_reads_as_each_version_knows_it(peer: Peer, made: str) -> None:
    who = peer.init()
    peer.init()
    assert peer.add(who, made, v=1) is Error.INVALID_PRODUCER_EPOCH
    assert peer.add(who, made, v=2) is Error.PRODUCER_FENCED
    assert peer.add_offsets(who, "group", v=1) is Error.INVALID_PRODUCER_EPOCH
    assert peer.add_offsets(who, "group", v=2) is Error.PRODUCER_FENCED
    assert peer.try_init(had=who, v=3)[0] is Error.INVALID_PRODUCER_EPOCH
    assert peer.try_init(had=who, v=4)[0] is Error.PRODUCER_FENCED


def test_producer_that_recovers_keeps_its_id(peer: Peer, made: str) -> None:
    """KIP-360: who says truly who it was gets the next epoch, and a repeated question the same."""
    who = peer.init()
    after = peer.init(had=who)
    assert after == (who[0], who[1] + 1)
    assert peer.init(had=who) == after
    assert peer.try_init(had=(who[0], who[1] - 1))[0] is Error.INVALID_REQUEST
    assert peer.init(had=after) == (who[0], who[1] + 2)
    assert peer.try_init(had=who)[0] is Error.PRODUCER_FENCED
    assert peer.try_init(had=(who[0] + 1000, 0))[0] is Error.PRODUCER_FENCED


def test_producer_that_recovers_aborts_what_it_had_open(peer: Peer, made: str) -> None:
    who = peer.init()
    assert peer.produce(who, 0, made, v=NEW_PRODUCE) == (NONE, 0)
    assert peer.try_init(had=who)[0] is Error.CONCURRENT_TRANSACTIONS
    peer.await_state("CompleteAbort")
    assert peer.log(made) == [(0, b"value"), (1, MARKER)]


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_out_of_bounds_are_refused(peer: Peer, timeout_ms: int) -> None:
    assert peer.try_init(timeout_ms=timeout_ms)[0] is Error.INVALID_TRANSACTION_TIMEOUT


def test_half_an_identity_is_refused(peer: Peer) -> None:
    assert peer.try_init(had=(5, -1))[0] is Error.INVALID_REQUEST
    assert peer.try_init(had=(-1, 5))[0] is Error.INVALID_REQUEST


# --- hanging transactions -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        (9, Error.INVALID_TXN_STATE),
        (10, Error.INVALID_TXN_STATE),
        (11, Error.TRANSACTION_ABORTABLE),
    ],
)
def test_write_outside_a_transaction_is_refused(
    peer: Peer, made: str, version: int, refused: Error
) -> None:
    who = peer.init()
    assert peer.produce(who, 0, made, v=version)[0] is refused
    assert peer.end_offset(made, committed=False) == 0


def test_write_after_the_end_is_refused(peer: Peer, made: str) -> None:
    """A delayed request of an old producer would hang in the log: nobody would end it again."""
    who = peer.init()
    peer.add(who, made)
    assert peer.produce(who, 0, made)[0] is NONE
    peer.end(who, commit=True)
    peer.await_state("CompleteCommit")
    assert peer.produce(who, 1, made)[0] is Error.TRANSACTION_ABORTABLE
    assert peer.produce(who, 1, made, v=9)[0] is Error.INVALID_TXN_STATE
    assert peer.end_offset(made, committed=True) == 2


def test_new_write_after_the_end_is_fenced(peer: Peer, made: str) -> None:
    who = peer.init()
    assert peer.produce(who, 0, made, v=NEW_PRODUCE) == (NONE, 0)
    peer.end(who, commit=True, v=NEW_END)
    peer.await_state("CompleteCommit")
    assert peer.produce(who, 1, made, v=NEW_PRODUCE)[0] is Error.INVALID_PRODUCER_EPOCH
    assert peer.describe().transaction_state == "CompleteCommit"


def test_write_of_an_unknown_producer_is_refused(peer: Peer, made: str) -> None:
    who = peer.init()
    for version in (OLD_PRODUCE, NEW_PRODUCE):
        stranger = peer.produce((who[0] + 1000, 0), 0, made, v=version)
        assert stranger[0] is Error.INVALID_PRODUCER_ID_MAPPING
        ahead = peer.produce((who[0], who[1] + 1), 0, made, v=version)
        assert ahead[0] is Error.INVALID_PRODUCER_EPOCH


def test_plain_write_into_an_open_transaction_is_refused(peer: Peer, made: str) -> None:
    who = peer.init()
    assert peer.produce(who, 0, made, v=NEW_PRODUCE)[0] is NONE
    assert peer.produce_plainly(who, 1, made)[0] is Error.INVALID_TXN_STATE


# --- sequences ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [OLD_PRODUCE, NEW_PRODUCE], ids=["old", "new"])
def test_sequences_in_a_transaction(peer: Peer, made: str, version: int) -> None:
    who = peer.init()
    if version == OLD_PRODUCE:
        peer.add(who, made)
    assert peer.produce(who, 0, made, b"a", b"b", v=version) == (NONE, 0)
    assert peer.produce(who, 0, made, b"a", b"b", v=version) == (NONE, 0)  # written before
    assert peer.produce(who, 3, made, v=version)[0] is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert peer.produce(who, 1, made, v=version)[0] is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert peer.produce(who, 2, made, v=version) == (NONE, 2)
    after = peer.init()
    assert peer.produce(who, 3, made, v=version)[0] is Error.INVALID_PRODUCER_EPOCH
    if version == OLD_PRODUCE:
        peer.add(after, made)
    assert peer.produce(after, 3, made, v=version)[0] is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert peer.produce(after, 0, made, v=version) == (NONE, 4)


def test_old_sequences_go_on_over_transactions(peer: Peer, made: str) -> None:
    who = peer.init()
    for sequence in (0, 1):
        peer.add(who, made)
        assert peer.produce(who, sequence, made)[0] is NONE
        peer.end(who, commit=True)
        peer.await_state("CompleteCommit")
    peer.add(who, made)
    assert peer.produce(who, 3, made)[0] is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert peer.produce(who, 1, made) == (NONE, 2)  # written before
    assert peer.open_since(made) == [-1]


def test_first_sequence_of_a_new_partition(peer: Peer, made: str) -> None:
    """A v1 producer may start anywhere where nothing is known of it; a v2 producer at 0 only."""
    who = peer.init()
    peer.add(who, made)
    assert peer.produce(who, 7, made) == (NONE, 0)
    peer.end(who, commit=True)
    after = peer.init()
    sequence = peer.produce(after, 7, made, v=NEW_PRODUCE)
    assert sequence[0] is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert peer.produce(after, 0, made, v=NEW_PRODUCE)[0] is NONE


def test_gap_before_the_first_write_is_remembered(peer: Peer, made: str) -> None:
    who = peer.init()
    assert peer.produce(who, 1, made, v=NEW_PRODUCE)[0] is Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert peer.produce(who, 0, made, v=NEW_PRODUCE) == (NONE, 0)
    assert peer.produce(who, 1, made, v=NEW_PRODUCE) == (NONE, 1)


# --- markers --------------------------------------------------------------------------------------


def test_stale_markers_are_refused(peer: Peer, made: str) -> None:
    who = peer.init()
    later = peer.init()
    peer.add(later, made)
    assert peer.produce(later, 0, made)[0] is NONE
    assert peer.write_marker(who, made, commit=True) is Error.INVALID_PRODUCER_EPOCH
    assert peer.end_offset(made, committed=True) == 0
    # Version 2 ends a transaction under an epoch that no record of it has.
    refused = peer.write_marker(later, made, commit=True, transaction_version=2)
    assert refused is Error.INVALID_PRODUCER_EPOCH
    assert peer.write_marker(later, made, commit=True, coordinator_epoch=9) is NONE
    assert peer.end_offset(made, committed=True) == 2
    peer.add(later, made)
    assert peer.produce(later, 1, made)[0] is NONE
    fenced = peer.write_marker(later, made, commit=True, coordinator_epoch=8)
    assert fenced is Error.TRANSACTION_COORDINATOR_FENCED


def test_marker_for_a_partition_that_is_not_there(peer: Peer, topic: str) -> None:
    refused = peer.write_marker((1, 0), topic, commit=True)
    assert refused is Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("later", "coordinator_epoch"), [(1, 0), (0, 1_000)])
def test_who_refuses_a_marker_leaves_the_transaction_prepared(
    peer: Peer, topic: str, later: int, coordinator_epoch: int
) -> None:
    """A marker of a client's own has told of a later producer, or of a later coordinator."""
    peer.topic(topic, 2)
    who = peer.init()
    told = who[0], who[1] + later
    told_so = peer.write_marker(told, topic, commit=False, coordinator_epoch=coordinator_epoch)
    assert told_so is NONE
    peer.add(who, topic, 0, 1)
    assert peer.end(who, commit=True)[0] is NONE
    peer.await_end(topic, 1, index=1)
    time.sleep(0.3)  # both markers were sent at once
    assert peer.describe().transaction_state == "PrepareCommit"
    assert peer.end_offset(topic, committed=False) == 1


def test_while_a_transaction_ends_everybody_waits(peer: Peer, made: str) -> None:
    """It never does, since its partition refuses the marker."""
    who = peer.init()
    assert peer.write_marker((who[0], who[1] + 9), made, commit=False) is NONE
    peer.add(who, made)
    error, after = peer.try_end(who, commit=True, v=NEW_END)
    assert (error, after) == (NONE, (who[0], who[1] + 1))
    stranger = who[0] + 1, 0
    for each in (who, after, stranger):
        assert peer.try_init(each)[0] is Error.CONCURRENT_TRANSACTIONS
        assert peer.try_add(each, made) is Error.CONCURRENT_TRANSACTIONS
        for commit in (True, False):
            told, _ = peer.try_end(each, commit=commit, v=NEW_END)
            assert told is Error.CONCURRENT_TRANSACTIONS
    old_flow = {
        after: Error.CONCURRENT_TRANSACTIONS,
        who: Error.PRODUCER_FENCED,
        stranger: Error.INVALID_PRODUCER_ID_MAPPING,
    }
    for each, refusal in old_flow.items():
        for commit in (True, False):
            assert peer.try_end(each, commit=commit, v=OLD_END)[0] is refusal


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_new", [False, True], ids=["old", "new"])
@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_a_transaction(
    peer: Peer, made: str, unique, is_new: bool, commit: bool
) -> None:
    group = unique("group")
    peer.find(group, GROUP_KEY)
    who = peer.init()
    if not is_new:
        assert peer.add_offsets(who, group) is NONE
    version = NEW_COMMIT if is_new else 4
    assert peer.commit_offset(who, group, made, 5, v=version) is NONE
    assert peer.committed_offset(group, made) == -1
    assert peer.committed_offset(group, made, stable=True) is Error.UNSTABLE_OFFSET_COMMIT
    assert peer.end(who, commit=commit, v=NEW_END if is_new else OLD_END)[0] is NONE
    peer.await_state("CompleteCommit" if commit else "CompleteAbort")
    assert peer.committed_offset(group, made, stable=True) == (5 if commit else -1)


def test_offsets_outside_a_transaction_are_refused(peer: Peer, made: str, unique) -> None:
    group = unique("group")
    peer.find(group, GROUP_KEY)
    who = peer.init()
    assert peer.commit_offset(who, group, made, 5, v=3) is Error.INVALID_TXN_STATE
    assert peer.commit_offset(who, group, made, 5, v=4) is Error.TRANSACTION_ABORTABLE
    ahead = who[0], who[1] + 1
    assert peer.commit_offset(ahead, group, made, 5, v=5) is Error.INVALID_PRODUCER_EPOCH


def test_transaction_that_lasts_too_long_is_aborted(peer: Peer, made: str) -> None:
    who = peer.init(timeout_ms=100)
    assert peer.produce(who, 0, made, v=NEW_PRODUCE) == (NONE, 0)
    peer.await_state("CompleteAbort")
    assert peer.epoch() == who[1] + 1
    assert peer.log(made) == [(0, b"value"), (1, MARKER)]
    assert peer.end_offset(made, committed=True) == 2
    assert peer.produce(who, 1, made, v=NEW_PRODUCE)[0] is Error.INVALID_PRODUCER_EPOCH
    assert peer.end(who, commit=False, v=NEW_END) == (NONE, (who[0], who[1] + 1))
