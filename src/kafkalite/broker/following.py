"""Long work that waits for others now and then: a slice of it per turn, and none meanwhile.

Owns nothing but the way between the two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices, Steps

logger = logging.getLogger(__name__)

# Yields None after a step, and in place of it what it has to wait for.
Waits: TypeAlias = "Generator[Later[Any] | None, None, None]"


def run(slices: Slices, work: Waits, done: Callable[[], None]) -> None:
    """Has all of it done, and then says so."""

    def again(_: object) -> None:
        run(slices, work, done)

    def go_on(waited_for: Later[Any] | None) -> None:
        if waited_for is None:
            done()
        else:
            waited_for.then(again, again)  # what failed is found where its value is asked for

    slices.run(_until_wait(work), go_on)


def _until_wait(work: Waits) -> Steps[Later[Any] | None]:
    try:
        for waited_for in work:
            if waited_for is not None and not waited_for.is_resolved:
                return waited_for
            yield
    except Exception:  # whoever waits for the end of it must not wait for ever
        logger.exception("work in slices failed by a mistake of ours")
    return None
