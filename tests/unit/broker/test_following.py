"""Long work that waits for others goes on, whatever becomes of what it waits for."""

from __future__ import annotations

from typing import Any

from kafkalite.broker.following import Waits, run
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices


def test_what_it_waits_for_may_fail() -> None:
    """The mistake is said where the value is asked for, and who follows goes on."""
    waited_for: Later[Any] = Later()
    done: list[str] = []

    def work() -> Waits:
        yield waited_for
        done.append("went on")
        yield None
        _ = waited_for.value

    clock = ManualClock()
    run(Slices(clock), work(), lambda: done.append("through"))
    assert done == []
    waited_for.fail(ZeroDivisionError())
    clock.advance(0)
    assert done == ["went on", "through"]
