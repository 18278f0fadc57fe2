"""Brokers in simulated worlds: sound ones pass, and each deliberately broken one is caught."""


import pytest

from kafkalite.coordinators import appending
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.transactions import ending, markers
from kafkalite.coordinators.transactions.shard import TransactionShard
from kafkalite.log import cleaner
from kafkalite.log.ended import Aborted
from kafkalite.log.partition_log import PartitionLog
from kafkalite.log.producers import Producers
from kafkalite.protocol.messages import InitProducerIdRequest
from kafkalite.replication.partition import Partition
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.run import Verdict, simulate
from kafkalite.sim.topics import Keeper
from kafkalite.sim.world import World

SEEDS = 20
# Others that have shown a defect, of the broker or of the simulation.
FOUND = (96, 894, 1892, 5031)
# How many seeds a broken broker is given to show itself.
PATIENCE_SEEDS = 20


@pytest.mark.parametrize("seed", [*range(SEEDS), *FOUND])
def test_sound_brokers_show_no_anomaly(seed: int) -> None:
    verdict = simulate(seed)
    assert not verdict.anomalies, f"seed {seed}: {verdict.anomalies}"
    assert verdict.counts["values"] > 100


def test_a_seed_determines_the_run() -> None:
    assert simulate(1) == simulate(1)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_topics_that_a_run_relies_on_outlast_a_power_cut(seed: int) -> None:
    """Also one that comes before anything else was asked."""
    world = World(seed, durability="fsync")
    world.run_until(lambda: world.is_up, "the broker starts")
    world.create_topic("t", 2)
    world.die(is_power_cut=True)
    world.run_until(lambda: world.is_up, "the broker comes back")
    assert len(world.broker.metadata.image.topics["t"].partitions) == 2


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_topic_that_clients_were_told_of_outlasts_a_power_cut(seed: int) -> None:
    """However long its creation takes to last: who made it asks again, and learns its id."""
    world = World(seed, durability="fsync")
    world.run_until(lambda: world.is_up, "the broker starts")
    world.life.slowest_job_ms = 9_000
    world.history.topics.promise("t")
    client = world.client()
    client.start(Keeper(world.history, world.random, "t").renew())
    world.run_until(lambda: not client.is_running, "the topic is made")
    made = world.history.topics.current("t")
    world.die(is_power_cut=True)
    world.run_until(lambda: world.is_up, "the broker comes back")
    assert made is not None
    assert world.broker.metadata.image.topic_id("t") == made.topic_id


@pytest.mark.parametrize("seed", range(2 * SEEDS))
def test_a_producer_id_is_given_to_one_producer_whatever_is_cut(seed: int) -> None:
    world = World(seed, durability="fsync")
    world.run_until(lambda: world.is_up, "the broker starts")
    first = producer_id(world)
    world.die(is_power_cut=True)
    world.run_until(lambda: world.is_up, "the broker comes back")
    assert producer_id(world) != first


def producer_id(world: World) -> int:
    """As a producer without transactions gets it."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    given: list[int] = []

    def asking() -> Script:
        while not given:
            [answer] = yield Ask([(request, 4)])
            if answer is not None and not answer.error_code:
                given.append(answer.producer_id)
            else:
                yield Sleep(20)

    client = world.client()
    client.start(asking())
    world.run_until(lambda: not client.is_running, "a producer id is given")
    return given[0]


def found_by(first: int) -> tuple[set[str], Verdict]:
    """The kinds of anomaly of the first seed that shows any."""
    for seed in range(first, first + PATIENCE_SEEDS):
        verdict = simulate(seed)
        if verdict.anomalies:
            return set(verdict.anomalies.found), verdict
    pytest.fail(f"{PATIENCE_SEEDS} seeds did not show it")


def test_coordinator_that_forgets_prepared_transactions_is_caught(monkeypatch) -> None:
    """After a restart nobody writes the markers that were under way."""
    monkeypatch.setattr(TransactionShard, "loaded", lambda *_: Effects())
    kinds, verdict = found_by(first=8)
    assert "unattended" in kinds, verdict.anomalies


def test_coordinator_that_ends_transactions_for_zombies_is_caught(monkeypatch) -> None:
    """An end that comes late, from a producer that was fenced, ends the transaction of its heir."""
    sound = ending.outcome_of

    def careless(current, event):
        event = type(event)(
            event.transactional_id, current.producer_id, current.producer_epoch, event.is_commit,
            event.client_version,
        )
        return sound(current, event)

    monkeypatch.setattr("kafkalite.coordinators.transactions.shard.outcome_of", careless)
    kinds, verdict = found_by(first=40)
    assert kinds & {"half visible", "aborted but visible", "lost", "kept twice"}, verdict.anomalies


def test_coordinator_that_commits_what_is_to_be_aborted_is_caught(monkeypatch) -> None:
    sound = appending.append_marker

    def committing(partition, producer, epoch, _, *rest):
        return sound(partition, producer, epoch, True, *rest)

    monkeypatch.setattr(markers, "append_marker", committing)
    kinds, verdict = found_by(first=0)
    assert "aborted but visible" in kinds, verdict.anomalies


def test_log_that_does_not_know_batches_again_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(Producers, "find_duplicate", lambda *_: None)
    monkeypatch.setattr(Producers, "_check_sequence", lambda *_: None)
    kinds, verdict = found_by(first=0)
    assert "duplicate" in kinds, verdict.anomalies


@pytest.mark.pure
def test_log_that_shows_open_transactions_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(
        PartitionLog, "last_stable_offset", property(lambda self: self.high_watermark)
    )
    kinds, verdict = found_by(first=0)
    assert kinds & {"dirty read", "skipped", "aborted but visible"}, verdict.anomalies


@pytest.mark.pure
def test_broker_that_acknowledges_before_the_disk_is_caught(monkeypatch) -> None:
    """With fsync: what a power cut takes back had been acknowledged, or read."""
    sound = Partition.write

    def hasty(self, *arguments, **named):
        result = sound(self, *arguments, **named)
        self.advance(self.log.log_end_offset)
        return result

    monkeypatch.setattr(Partition, "write", hasty)
    kinds, verdict = found_by(first=20)
    assert kinds & {"lost", "inconsistent", "refused", "dirty read"}, verdict.anomalies


@pytest.mark.pure
def test_compaction_for_which_an_aborted_transaction_never_ends_is_caught(monkeypatch) -> None:
    """What its producer commits later goes, in topics and among the offsets of groups."""

    def endless(self, header):
        known = self._of_producers.get(header.producer_id, [])
        begun = [each for each in known if each.first_offset <= header.base_offset]
        return begun[-1] if begun else None

    monkeypatch.setattr(Aborted, "find", endless)
    kinds, verdict = found_by(first=0)
    assert kinds & {"lost", "copied wrongly"}, verdict.anomalies


@pytest.mark.pure
def test_compaction_that_goes_beyond_open_transactions_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(cleaner, "_end_of_cleanable", lambda log, *_: log.active.base_offset)
    kinds, verdict = found_by(first=5)
    assert kinds & {"lost", "aborted but visible"}, verdict.anomalies
