"""`kafka.clock`: the brokers' time in the hands of a test.

    kafka.clock.freeze()
    kafka.clock.advance(days=7)

Frozen is the time that records are stamped with and retention counts by; what clients wait for goes
on, since they live in the machine's time. A jump moves all time: retention, compaction, producer
ids and transactions grow older by it, and so do the sessions of members whose connection has gone.
Owns what people write; the clock itself is clock.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import SupportsFloat

from kafkalite.testing import acting, arguments
from kafkalite.testing.clock import Shift
from kafkalite.testing.running import Run

Moment = datetime | SupportsFloat


class Time:
    """The time of the brokers of one EmbeddedKafka, over all their lives."""

    def __init__(self, run: Callable[[], Run], shift: Shift) -> None:
        self._run = run
        self._shift = shift

    @property
    def now(self) -> datetime:
        """What the brokers' clock says."""
        return datetime.fromtimestamp(self._run().now_ms() / 1000, UTC)

    @property
    def is_frozen(self) -> bool:
        return self._shift.is_frozen

    def freeze(self, at: Moment | None = None) -> None:
        """The brokers' clock stands still, where it is or at a moment: a datetime with its time
        zone, or milliseconds since 1970."""
        at_ms = None if at is None else arguments.moment_ms(at)
        run = self._run()
        run.ask("freeze its clock", partial(acting.freeze, run, at_ms))

    def unfreeze(self) -> None:
        """It goes on from where it stood."""
        run = self._run()
        run.ask("unfreeze its clock", partial(acting.unfreeze, run))

    def reset(self) -> None:
        """It is the machine's again, but for what was advanced: time never goes back."""
        run = self._run()
        run.ask("set its clock", partial(acting.reset, run))

    def advance(
        self,
        *,
        days: SupportsFloat = 0,
        hours: SupportsFloat = 0,
        minutes: SupportsFloat = 0,
        seconds: SupportsFloat = 0,
        milliseconds: SupportsFloat = 0,
        expire_members: bool = False,
    ) -> None:
        """All time is that much later, and what fell due is done when this returns. Members of
        groups whose clients are connected stay, unless they are to expire."""
        duration_ms = arguments.duration_ms(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        run = self._run()
        run.ask(
            f"advance its clock by {duration_ms} ms",
            partial(acting.advance, run, duration_ms, expire_members=expire_members),
        )
