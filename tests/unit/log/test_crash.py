"""A sample of the search for crashes that lose what was promised; `make crash` does all of it."""

import pytest

from tests.crash.kill import kill_rounds
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


def test_a_killed_process_loses_nothing(tmp_path):
    assert kill_rounds(tmp_path, 3) > 0
