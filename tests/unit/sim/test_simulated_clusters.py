"""Three brokers and their controller in simulated worlds: sound ones pass, broken are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from kafkalite.env.slicing import Steps
from kafkalite.log.producers import Producers
from kafkalite.replication import acting
from kafkalite.replication.fetcher import Fetcher
from kafkalite.replication.leader import Leader
from kafkalite.sim import cluster
from kafkalite.sim.cluster import Cluster
from kafkalite.sim.cluster_run import PLACES, Vigil, simulate_cluster
from kafkalite.sim.coverage import A_FEW_SEEDS, CLUSTERS, missing

pytestmark = pytest.mark.pure


@pytest.fixture(autouse=True)
def every_wait_ends_with_the_broker() -> None:
    """Of brokers that are killed none does, and others go on when one stops."""


def test_sound_clusters_show_no_anomaly_and_meet_what_is_common() -> None:
    met: Counter[str] = Counter()
    for seed in range(A_FEW_SEEDS):
        verdict = simulate_cluster(seed)
        assert not verdict.anomalies, f"seed {seed}: {verdict.anomalies}"
        met.update(verdict.counts)
    assert missing(met, A_FEW_SEEDS, CLUSTERS) == []


def test_a_seed_determines_the_run() -> None:
    assert simulate_cluster(4) == simulate_cluster(4)


# --- broken ones ----------------------------------------------------------------------------------


def cuts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*_: object) -> Steps[bool]:
        yield from ()
        return True

    monkeypatch.setattr(acting, "_cut", cut)


def commits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leader, "high_watermark", lambda _, moment: moment.own_offset)


def lets_whoever_is_up_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cluster.SETTINGS, "unclean.leader.election.enable", "true")


def counts_before_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fetcher, "_has_to_last", lambda *_: False)


def knows_no_batch_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Producers, "find_duplicate", lambda *_: None)
    monkeypatch.setattr(Producers, "_check_sequence", lambda *_: None)


def takes_in_whoever_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    def joins(leader, broker_id, _, moment):
        is_out = leader.pending is None and broker_id not in leader.isr
        if is_out and leader._is_eligible(broker_id, moment):
            yield leader._alter([*leader.isr, broker_id], moment, joining=broker_id)

    monkeypatch.setattr(Leader, "_expansions", joins)


@pytest.mark.parametrize(
    ("plant", "seed", "kinds"),
    [
        (cuts_nothing, 0, {"stuck"}),
        (commits_alone, 0, {"lost"}),
        (lets_whoever_is_up_lead, 12, {"lost"}),
        (counts_before_it_lasts, 17, {"lost"}),
        (knows_no_batch_again, 0, {"duplicate"}),
        (takes_in_whoever_fetches, 3, {"lost"}),
    ],
)
def test_a_broken_cluster_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], seed: int, kinds: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By a seed that is known to, or by one of the next."""
    plant(monkeypatch)
    found: set[str] = set()
    for each in range(seed, seed + 20):
        found |= {*simulate_cluster(each).anomalies.found}
        if kinds <= found:
            return
    pytest.fail(f"not caught: {found}")


def test_an_epoch_with_two_leaders_is_seen() -> None:
    vigil = Vigil(Cluster(1, "page-cache"))
    for node_id, epoch in ((1, 0), (2, 1), (1, 0)):
        vigil._leads(node_id, PLACES[0], epoch)
    assert not vigil.found
    vigil._leads(3, PLACES[0], 1)
    assert vigil.found == ["('t', 0) in epoch 1: brokers 2 and 3"]
