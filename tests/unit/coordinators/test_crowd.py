"""Whatever members do and whenever the coordinator dies: the rules of groups hold."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkalite.coordinators.groups.consumer_group import ConsumerGroup
from tests.unit.coordinators.crowd import GROUP, Crowd
from tests.unit.coordinators.power_cuts import BUGS

STEPS = 200
EXAMPLES = 6

any_seed = given(seed=st.integers(0, 2**32 - 1))
thoroughly = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def watched() -> Iterator[None]:
    """The shard's own failures are the test's."""
    log = logging.getLogger("kafkalite.coordinators.runtime")
    log.addHandler(BUGS)
    log.propagate = False
    yield
    log.propagate = True
    log.removeHandler(BUGS)


def run(seed: int, kinds: str) -> Crowd:
    crowd = Crowd(seed, kinds=kinds)
    for _ in range(STEPS):
        crowd.step()
    return crowd


@pytest.mark.parametrize("kinds", ["o", "c", "co", "coo"])
@any_seed
@thoroughly
def test_one_owner_no_lost_commit_and_the_state_is_the_fold_of_its_log(
    kinds: str, seed: int
) -> None:
    """`o` is a client of the old protocol, `c` one of the new."""
    run(seed, kinds)


def test_the_crowd_is_busy() -> None:
    """The checks above would pass in an empty world too."""
    crowds = [run(seed, kinds) for seed in range(4) for kinds in ("o", "c", "co")]
    assert sum(bool(crowd.acknowledged) for crowd in crowds) > len(crowds) // 2
    assert sum(crowd.partition.log.log_end_offset for crowd in crowds) > 50 * len(crowds)
    assert any(crowd.told for crowd in crowds)
    kinds = {type(crowd.runtime.shard.state.groups.get(GROUP)) for crowd in crowds}  # type: ignore[union-attr]
    assert ConsumerGroup in kinds
