"""Tokens of OAUTHBEARER that take longer to read than the loop has in a turn.

Owns the worker that reads them: one of its own, so that whoever sends many keeps nobody waiting but
others who do. Between the arrival of a token and its answer the memory of its request is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkalite.env import Env
from kafkalite.env.background import Background, ThreadBackground
from kafkalite.env.later import Later
from kafkalite.security.oauthbearer import Checked, NotTaken

LARGE = 32_768  # no issuer's token comes near it


class LargeTokens:
    """Of one broker."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._worker: Background | None = None
        self._waiting: dict[Later[Checked], None] = {}

    def read(self, token: str, check: Callable[[], Checked]) -> Checked | Later[Checked]:
        """What `check` comes to, which touches nothing of the loop's."""
        if len(token) <= LARGE:
            return check()
        if self._worker is None:
            shared = self._env.background
            self._worker = shared.apart() if isinstance(shared, ThreadBackground) else shared
        later: Later[Checked] = Later()
        self._waiting[later] = None
        self._worker.submit(check, partial(self._was_read, later))
        return later

    def stop(self) -> None:
        if isinstance(self._worker, ThreadBackground):
            self._worker.close(0)
        for later in list(self._waiting):
            self._was_read(later, NotTaken("the broker stops"))

    def _was_read(self, later: Later[Checked], outcome: Checked | BaseException) -> None:
        if later not in self._waiting:  # it was answered at the stop
            return
        del self._waiting[later]
        if isinstance(outcome, BaseException):
            mistake = RuntimeError("a token could not be read")
            mistake.__cause__ = outcome
            later.fail(mistake)
        else:
            later.resolve(outcome)
