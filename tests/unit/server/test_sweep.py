"""The sweep that cuts off who is out of time: a few connections in each step."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kafkalite.env.slicing import ELEMENTS_PER_STEP, Work
from kafkalite.server.limits import SWEEP_MS, Limits
from tests.unit.server.support import FakeLink, World

MANY = 1_000


def test_very_many_that_are_out_of_time_are_cut_off_a_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(Limits(frame_timeout_ms=2 * SWEEP_MS))
    for _ in range(MANY):
        link = FakeLink()
        world.connect(link)
        world.feed(link, b"\0\0")
    world.sweep()
    works: list[Work] = []
    monkeypatch.setattr(world.slices, "begin", works.append)
    world.sweep()
    ended = [len(world.ended)]
    ended += [len(world.ended) for _ in works[0].steps]
    ended.append(len(world.ended))
    assert ended[0] == 0
    assert ended[-1] == MANY
    assert max(later - sooner for sooner, later in pairwise(ended)) <= ELEMENTS_PER_STEP


@pytest.mark.parametrize("end", ["done", "lost"])
def test_the_next_sweep_comes_once_the_last_one_is_over(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    works: list[Any] = []
    monkeypatch.setattr(world.slices, "begin", works.append)
    world.sweep()
    world.sweep()
    assert len(works) == 1
    works[0].done(None) if end == "done" else works[0].lost()
    world.sweep()
    assert len(works) == 2
    world.deadlines.stop()
    works[1].lost()
    world.sweep()
    assert len(works) == 2
