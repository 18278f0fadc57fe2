"""Workers that do jobs when the test says, and that tell the loop's calls from theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.env.background import QueuedBackground


class Beside(QueuedBackground):
    """`is_loop` says who is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.is_loop = True

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def work() -> Any:
            self.is_loop = False
            try:
                return job()
            finally:
                self.is_loop = True

        super().submit(work, done)
