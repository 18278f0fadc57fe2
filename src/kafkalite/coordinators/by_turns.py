"""What a shard's runtime has to do: a few things at once, and a slice per turn of very many.

Owns whether it is in the loop's slices. Thousands of events may wait behind one that takes long,
and as many replies for one commit. Invariant: what is left is gone on with until nothing can be
done.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.env.slicing import Slices, Steps, Work

AT_ONCE = 16  # events, replies and errands, each of some tens of microseconds
PER_STEP = 4
# After so many the line is one that does not end.
MOST_BEFORE_TIMERS = 100_000


class ByTurns:
    __slots__ = ("_do", "_done", "_is_in_line", "_slices")

    def __init__(self, slices: Slices, do: Callable[[int], bool]) -> None:
        """`do` does so many things at most, and says whether nothing more can be done."""
        self._slices = slices
        self._do = do
        self._is_in_line = False
        self._done = 0  # since it is in line

    @property
    def is_behind(self) -> bool:
        """Whether what has come is still to be done; always so much is not waited for."""
        return self._is_in_line and self._done < MOST_BEFORE_TIMERS

    def go_on(self) -> None:
        """Said whenever there may be something to do."""
        if not self._is_in_line and not self._do(AT_ONCE):
            self._is_in_line, self._done = True, 0
            self._slices.enter(Work(self._steps(), self._over, lost=self._over))

    def _steps(self) -> Steps[None]:
        while not self._do(PER_STEP):
            self._done += PER_STEP
            yield

    def _over(self, _: None = None) -> None:
        self._is_in_line = False
