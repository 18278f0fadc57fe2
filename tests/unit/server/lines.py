"""A clock that counts the lines which each turn of the loop runs: some ten of them take a
microsecond, on any machine the same number."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from kafkalite.env.clock import ManualClock, ManualTimer

T = TypeVar("T")


class LineClock(ManualClock):
    """Stands still, and knows how many lines the longest turn ran since `begin`."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        super().__init__(now_ms)
        self.begin()

    def begin(self) -> None:
        self.longest: Counter[CodeType] = Counter()

    @property
    def most(self) -> int:
        return self.longest.total()

    def places(self) -> str:
        found = self.longest.most_common(3)
        return ", ".join(f"{code.co_filename}:{code.co_name} {count}" for code, count in found)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        return super().call_later(delay_ms, lambda: self.turn(callback))

    def turn(self, callback: Callable[[], T]) -> T:
        """Calls back as a turn of its own."""
        lines: Counter[CodeType] = Counter()

        def of_frame(frame: FrameType, event: str, _: Any) -> Any:
            lines[frame.f_code] += event == "line"
            return of_frame

        def of_call(frame: FrameType, event: str, _: Any) -> Any:
            return of_frame if _is_ours(frame.f_code.co_filename) else None

        outer = sys.gettrace()
        sys.settrace(of_call)
        try:
            return callback()
        finally:
            sys.settrace(outer)
            if lines.total() > self.most:
                self.longest = lines


def _is_ours(file_name: str) -> bool:
    """Code of the package, and what it generates; not what is done once, at its first import."""
    is_generated = file_name.startswith(("<decode", "<encode"))
    return is_generated or "/kafkalite/" in file_name
