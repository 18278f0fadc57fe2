"""When a new assignment is made too soon after the last one."""

import pytest

from kafkalite.coordinators.groups.target import is_young


@pytest.mark.parametrize(
    ("made_ms", "interval_ms", "now_ms", "expected"),
    [
        (1_000, 500, 1_499, True),
        (1_000, 500, 1_500, False),
        (0, 500, 1, False),  # it is not known when it was made
        (1_000, 500, 1_000, True),
        (1_000, 500, 999, False),  # the clock was set back: nobody knows by how much
        (1_000, 0, 10, False),
    ],
)
def test_an_assignment_is_young_for_its_interval(
    made_ms: int, interval_ms: int, now_ms: int, expected: bool
) -> None:
    assert is_young(made_ms, interval_ms, now_ms) is expected
