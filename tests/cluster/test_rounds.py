"""A small sample of `make cluster`: a broker is killed, one is cut off, and one stands still."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import faults
from tests.cluster.nodes import running
from tests.cluster.rounds import run

SEED = 7


@pytest.mark.crash
@pytest.mark.timeout(900)  # a slow machine takes as long as it needs
def test_nothing_acknowledged_is_lost_in_a_round_of_faults(tmp_path: Path) -> None:
    with running(tmp_path) as cluster:
        told = run(cluster, SEED, [faults.kill_one, faults.cut_one_off, faults.pause_briefly])
    assert told.wrong == []
