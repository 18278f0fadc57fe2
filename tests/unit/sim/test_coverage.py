"""A search that never met a fault has not looked for what it breaks."""

from __future__ import annotations

import errno
from collections import Counter
from functools import partial
from random import Random

import pytest
from click.testing import CliRunner

from kafkalite.sim import __main__, world
from kafkalite.sim.checker import Anomalies
from kafkalite.sim.coverage import (
    A_FEW_SEEDS,
    CLIENTS,
    COMMON,
    GROUPS_COMMON,
    GROUPS_RARE,
    MANY_SEEDS,
    RARE,
    missing,
)
from kafkalite.sim.run import Verdict, simulate
from kafkalite.sim.trouble import CODES, Trouble
from kafkalite.sim.world import World

FIRST_SEED = 20


def test_a_few_seeds_meet_all_that_is_common() -> None:
    met: Counter[str] = Counter()
    for seed in range(FIRST_SEED, FIRST_SEED + A_FEW_SEEDS):
        met.update(simulate(seed).counts)
    assert missing(met, A_FEW_SEEDS, CLIENTS) == []


def test_every_fault_has_a_share() -> None:
    assert all(share > 0 for share in world._FAULTS.values())


@pytest.mark.parametrize("seeds", [1, A_FEW_SEEDS, MANY_SEEDS])
def test_a_search_in_which_a_fault_never_came_about_fails_by_its_name(
    monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    counts = dict.fromkeys((*COMMON, *RARE, *GROUPS_COMMON, *GROUPS_RARE), 1)
    del counts["power cuts"], counts["EIO at a start"]
    for play in __main__.PLAYS:
        verdict = partial(Verdict, anomalies=Anomalies(), counts=counts, logical_ms=1)
        monkeypatch.setitem(__main__.PLAYS, play, verdict)
    ended = CliRunner().invoke(__main__.main, ["--seeds", str(seeds)])
    assert ended.exit_code == (seeds >= A_FEW_SEEDS)
    assert ("clients, never met: power cuts" in ended.output) == (seeds >= A_FEW_SEEDS)
    assert ("groups, never met: power cuts" in ended.output) == (seeds >= A_FEW_SEEDS)
    assert ("EIO at a start" in ended.output) == (seeds >= MANY_SEEDS)


@pytest.mark.parametrize("code", CODES)
def test_a_start_in_each_kind_of_trouble_is_made_up_for(code: int) -> None:
    """And the broker is there again when it has passed."""
    troubled = World(1)
    troubled.run_until(lambda: troubled.is_up, "the broker starts")
    troubled.create_topic("t", 1)
    trouble = Trouble(Random(1), code, "/data/t-", 1.0, troubled._count_trouble)
    troubled.trouble, troubled.disk.before_open = trouble, trouble.before_open
    troubled.stop_cleanly()
    troubled.run(1_000)
    name = errno.errorcode[code]
    assert troubled.history.counts[f"{name} at a start"]
    troubled.end_trouble(troubled.trouble)
    if troubled.is_up:  # without that partition
        troubled.stop_cleanly()
        troubled.run(1_000)
    troubled.run_until(lambda: troubled.is_up, "the broker comes back")
    assert ("t", 0) not in troubled.broker.partitions.offline


@pytest.mark.parametrize("code", CODES)
def test_a_trouble_that_is_over_before_the_broker_has_ended_for_it_is_made_up_for(
    code: int,
) -> None:
    troubled = World(1)
    troubled.run_until(lambda: troubled.is_up, "the broker starts")
    troubled.create_topic("t", 1)

    def met(what: str) -> None:
        troubled._count_trouble(what)
        troubled.end_trouble(trouble)

    trouble = Trouble(Random(1), code, "/data/t-", 1.0, met)
    troubled.trouble, troubled.disk.before_open = trouble, trouble.before_open
    troubled.die(is_power_cut=False)
    troubled.run_until(lambda: troubled.has_met_trouble, "the trouble is met")
    troubled.run(1_000)
    assert troubled.is_up


def test_all_that_is_looked_for_is_looked_for_once() -> None:
    assert len({*COMMON, *RARE}) == len(COMMON) + len(RARE)
    assert len({*GROUPS_COMMON, *GROUPS_RARE}) == len(GROUPS_COMMON) + len(GROUPS_RARE)
