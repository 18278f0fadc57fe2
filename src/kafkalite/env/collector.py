"""Python's collector of cyclic garbage, which looks at every object there is and holds up all.

A look at everything takes 80 to 180 ms over 5,000 partitions. What a broker is done with goes with
its last reference (`tests/unit/broker/test_no_circles.py`), so there is next to nothing to find.

In a program that is somebody else's (`EmbeddedKafka`) its collector is left as it is, but that it
rests while long work is under way, for so long at most. A program that is its broker (`serve`) has
it look only at what is new: what survived a look is left out of all later ones. What of that has
become garbage since is found by a look at everything, when the process has grown by half and has
little to do, or has grown a lot.

Owns whether it rests, and what it looks at. Of several loops in one process, each in its thread,
one at a time has it rest. Invariants: whoever has switched it off finds it off; it never rests
longer than somebody here is at work, in a forked child neither; cyclic garbage is no more than so
many times what is in use.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import Any

from kafkalite.env import unix

MOST_S = 10.0
MOST_YOUNG = 20_000  # objects that it has not looked at; two milliseconds
PAUSE_S = 1.0  # in which it may come, when long work never ends

# When new objects are looked at, as Python has it, and for the second time: some 15,000 at most.
THRESHOLDS = (700, 10, 1)
OLD = 2  # of the generations, the last
TEND_S = 10.0  # between two thoughts about a look at everything
IDLE = 0.005  # of a processor: who computes less has little to do
GROWN_IDLE = 1.5  # times what there was after the last look at everything
GROWN_BUSY = 4.0
LEAST_BLOCKS = 500_000  # some 50 MB; what there was counts as that much at least


class Collector:
    """The process's own; whoever has long work under way keeps it at rest."""

    def __init__(self) -> None:
        self._thread: dict[None, int] = {}  # which one has it rest, if any does
        self._resting: set[int] = set()
        self._since_s = 0.0
        self._was_on = False
        self._before: tuple[int, int, int] | None = None  # the thresholds, once it has settled
        self._size = (1, 1)
        self._tended = (0.0, 0.0)  # when, and the processor time until then

    # --- in anybody's program ---------------------------------------------------------------------

    def rest(self, who: object) -> None:
        """From now on, until all who said so have said `go_on`."""
        if self._before is not None:
            return  # it looks at little at a time anyhow
        here = threading.get_ident()
        if self._thread.setdefault(None, here) != here:  # one operation: no thread comes between
            return
        if not self._resting:
            self._since_s = time.monotonic()
            self._was_on = gc.isenabled()
            gc.disable()
        self._resting.add(id(who))

    def still(self) -> None:
        """Said in each turn that long work is done in; now and then it may come all the same."""
        if self._before is not None:
            gc.freeze()  # what this turn made: no look is due while as much is let go of as is made
        if not self._is_here:
            return
        if self._was_on and gc.get_count()[0] > MOST_YOUNG:
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
        if self._is_here:
            self._resting.discard(id(who))
            if not self._resting:
                self._end()

    def wake(self) -> None:
        """This thread's loop has ended, with whatever was under way."""
        if self._is_here:
            self._end()

    def wake_in_child(self) -> None:
        """Who had it rest is not in a forked child, where nobody would ever say that it is over."""
        if self._thread:
            self._end()

    @property
    def _is_here(self) -> bool:
        return self._thread.get(None) == threading.get_ident()

    def _end(self) -> None:
        self._resting.clear()
        self._switch_on()
        self._was_on = False
        self._thread.clear()

    def _switch_on(self) -> None:
        if self._was_on:
            gc.enable()

    # --- in a program that is its broker ----------------------------------------------------------

    def settle(self) -> None:
        """What there is now, and what survives a look, is looked at no more."""
        self.wake()
        if self._before is None:
            self._before = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)
            gc.callbacks.append(self._looked)
        self._spare()

    def unsettle(self) -> None:
        """All is as it was before."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None
            gc.callbacks.remove(self._looked)
            gc.unfreeze()

    def tend(self) -> None:
        """Said every TEND_S: has it look at everything when that is due."""
        since_s, spent_s = self._tended
        self._tended = now_s, now_spent_s = time.monotonic(), time.process_time()
        is_idle = now_spent_s - spent_s < IDLE * (now_s - since_s)
        if self._before is not None and self._grown() > (GROWN_IDLE if is_idle else GROWN_BUSY):
            gc.unfreeze()
            gc.collect()
            self._spare()

    def _looked(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] == OLD:
            gc.freeze()

    def _spare(self) -> None:
        gc.freeze()
        self._size = _size()

    def _grown(self) -> float:
        blocks, peak = _size()
        return max(blocks / self._size[0], peak / self._size[1])


def _size() -> tuple[int, int]:
    """Small blocks of memory in use, and the most memory that there ever was, with large ones."""
    return max(sys.getallocatedblocks(), LEAST_BLOCKS), unix.peak_memory()


of_process = Collector()
unix.in_forked_child(of_process.wake_in_child)
