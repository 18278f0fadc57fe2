"""A small sample of `make cluster`: one broker is killed, and one is paused for a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import faults
from tests.cluster.nodes import running
from tests.cluster.rounds import run

SEED = 7


@pytest.mark.crash
def test_nothing_acknowledged_is_lost_in_a_round_of_faults(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        told = run(cluster, SEED, [faults.kill_one, faults.pause_briefly])
    assert told.wrong == []
    assert told.acknowledged > 100
    assert told.transactions
