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


class ByTurns:
    __slots__ = ("_do", "_is_in_line", "_slices")

    def __init__(self, slices: Slices, do: Callable[[int], bool]) -> None:
        """`do` does so many things at most, and says whether nothing more can be done."""
        self._slices = slices
        self._do = do
        self._is_in_line = False

    def go_on(self) -> None:
        """Said whenever there may be something to do."""
        if not self._is_in_line and not self._do(AT_ONCE):
            self._is_in_line = True
            self._slices.enter(Work(self._steps(), self._over, lost=self._over))

    def _steps(self) -> Steps[None]:
        while not self._do(PER_STEP):
            yield

    def _over(self, _: None = None) -> None:
        self._is_in_line = False
