"""A sample of the search for crashes that lose what was promised; `make crash` does all of it."""

import pytest

from tests.crash.kill import kill_rounds
from tests.crash.moves import MoveWorkload, crash_points_of_moves
from tests.crash.seams import live
from tests.crash.search import crash_points
from tests.crash.worlds import Workload

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("is_fsynced", [True, False])
@pytest.mark.parametrize("is_compacted", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost(seed, is_compacted, is_fsynced):
    workload = Workload(
        seed, is_fsynced, is_compacted, has_cuts=not is_compacted, steps=16, is_uneven=seed > 0
    )
    assert crash_points(workload, states=2) > 50


@pytest.mark.parametrize("is_fsynced", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_acknowledged_is_lost_by_a_move_nor_by_a_start_without_a_disk(seed, is_fsynced):
    workload = MoveWorkload(seed, is_fsynced, is_uneven=seed > 0, steps=10)
    assert crash_points_of_moves(workload, states=2, every=23) > 20


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_nothing_is_lost_where_all_that_changes_logs_meets(first):
    assert sum(live(seed) for seed in range(first, first + 20)) > 40


def test_a_killed_process_loses_nothing(tmp_path):
    assert kill_rounds(tmp_path, 3) > 0
