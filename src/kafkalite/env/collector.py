"""Python's collector of cyclic garbage, which looks at every object there is and holds up all.

A large request makes objects by the hundred thousand, and each quarter more than before has the
collector go over all of the process: 80 to 240 ms. Nearly none of them is garbage, and what is goes
with its last reference. So the collector rests while long work is under way, and for so long at
most. What a start has made is left out of every look until a topic is deleted: there is hardly any
garbage in it, and to look at 30,000 partitions takes a second. Owns whether it rests. Invariant:
whoever has switched it off finds it off.
"""

from __future__ import annotations

import gc
import time

MOST_S = 10.0
MOST_YOUNG = 20_000  # objects that it has not looked at; two milliseconds
PAUSE_S = 1.0  # in which it may come, when long work never ends


class Collector:
    """The process's own; whoever has long work under way keeps it at rest."""

    def __init__(self) -> None:
        self._resting: set[int] = set()
        self._since_s = 0.0
        self._was_on = False
        self._has_settled = False

    def rest(self, who: object) -> None:
        """From now on, until all who said so have said `go_on`."""
        if not self._resting:
            self._since_s = time.monotonic()
            self._was_on = gc.isenabled()
            gc.disable()
        self._resting.add(id(who))

    def still(self) -> None:
        """Said in each turn that long work is done in; now and then it may come all the same."""
        if not self._resting:
            return
        if gc.get_count()[0] > MOST_YOUNG:
            gc.collect(1)  # those alone, so that they are not too many for one look later
        age_s = time.monotonic() - self._since_s
        if age_s < MOST_S:
            return
        if age_s < MOST_S + PAUSE_S:
            self._switch_on()
        else:
            self._since_s = time.monotonic()
            gc.disable()

    def go_on(self, who: object) -> None:
        if id(who) in self._resting:
            self._resting.discard(id(who))
            if not self._resting:
                self._switch_on()

    def settle(self) -> None:
        """What there is now stays, and is looked at no more: for a program that is its broker."""
        self._has_settled = True
        gc.freeze()

    def unsettle(self) -> None:
        """Much of that may be garbage now."""
        if self._has_settled:
            self._has_settled = False
            gc.unfreeze()

    def wake(self) -> None:
        """A loop has ended, with whatever was under way."""
        if self._resting:
            self._resting.clear()
            self._switch_on()

    def _switch_on(self) -> None:
        if self._was_on:
            gc.enable()


of_process = Collector()
