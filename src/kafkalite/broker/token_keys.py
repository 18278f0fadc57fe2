"""The keys that signed tokens of one listener are checked with, read when that is due.

Owns when: at the start, from time to time, again after a failure, and for a token of a key that is
not known: once a minute for each name of one, and once a second for all. It is done by a worker of
its own, which keeps nobody waiting but those who come before the first reading is over. Invariants:
one reading at a time; keys hold until others have been read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kafkalite.broker.large_tokens import LargeTokens
from kafkalite.env import Env
from kafkalite.env.background import Background, ThreadBackground
from kafkalite.env.clock import Timer
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.security.key_sets import PublicKey, read_keys
from kafkalite.security.key_source import KeysUnreadable
from kafkalite.security.oauth_settings import SignedSettings
from kafkalite.security.oauthbearer import Checked, NotTaken
from kafkalite.security.signed_tokens import UnknownKey, checked
from kafkalite.security.token_parts import MalformedPart
from kafkalite.server.limits import LimitedLog

LOOK_MS = 5_000  # at a file
LEAST_BETWEEN_MS = 1_000
MISSING_MS = 60_000
MOST_MISSING = 16
LONGEST_ID = 1_000
MOST_DOUBLINGS = 30


class TokenKeys:
    """Of one listener."""

    def __init__(
        self, env: Env, settings: SignedSettings, log: LimitedLog, large: LargeTokens
    ) -> None:
        self._env, self._settings, self._log = env, settings, log
        self._large = large
        self._keys: Sequence[PublicKey] | None = None
        self._first: Later[None] = Later()  # filled when the first reading is over
        self._background: Background | None = None
        self._timer: Timer | None = None
        self._is_reading = self._is_stopped = False
        self._began_ms = -LEAST_BETWEEN_MS
        self._failures = 0
        self._missing: dict[str, int] = {}  # key ids, and until when nobody looks for them again

    def start(self) -> None:
        shared = self._env.background
        self._background = shared.apart() if isinstance(shared, ThreadBackground) else shared
        self._read()

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if isinstance(self._background, ThreadBackground):
            self._background.close(0)
        if not self._first.is_resolved:
            self._first.resolve(None)

    # --- tokens -----------------------------------------------------------------------------------

    def check(self, token: str) -> Checked | Later[Checked]:
        if self._first.is_resolved:
            return self._checked(token)
        in_turn = self._first.then_ask(lambda _: self._env.slices.later(self._in_turn(token)))
        return in_turn.then_ask(_later)

    def _in_turn(self, token: str) -> Steps[Checked | Later[Checked]]:
        """As one of very many who came before there were keys."""
        yield
        return self._checked(token)

    def _checked(self, token: str) -> Checked | Later[Checked]:
        if self._keys is None:
            return NotTaken(f"no keys could be read from {self._settings.source} so far")
        now_ms = self._env.clock.now_ms()
        check = partial(checked, token, self._keys, self._settings.rules, now_ms)
        found = self._large.read(token, check)
        return found.map(self._noted) if isinstance(found, Later) else self._noted(found)

    def _noted(self, found: Checked) -> Checked:
        if isinstance(found, UnknownKey) and found.key_id is not None:
            self._miss(found.key_id)
        return found

    def _miss(self, key_id: str) -> None:
        now_ms = self._env.clock.monotonic_ms()
        if len(key_id) > LONGEST_ID or self._missing.get(key_id, now_ms) > now_ms:
            return
        self._missing.pop(key_id, None)  # it is the youngest again
        self._missing[key_id] = now_ms + MISSING_MS
        if len(self._missing) > MOST_MISSING:
            del self._missing[next(iter(self._missing))]
        if not self._is_reading:
            self._read_in(max(0, self._began_ms + LEAST_BETWEEN_MS - now_ms))

    # --- reading ----------------------------------------------------------------------------------

    def _read_in(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_stopped:
            self._timer = self._env.clock.call_later(delay_ms, self._read)

    def _read(self) -> None:
        if self._is_reading or self._is_stopped:
            return
        assert self._background is not None, "keys are read before the start"
        self._is_reading, self._began_ms = True, self._env.clock.monotonic_ms()
        source = self._settings.source
        self._background.submit(lambda: read_keys(source.read()), self._was_read)

    def _was_read(self, outcome: tuple[PublicKey, ...] | BaseException) -> None:
        self._is_reading = False
        if self._is_stopped:
            return
        if isinstance(outcome, BaseException):
            self._failed(outcome)
        else:
            self._keys, self._failures = outcome, 0
            for each in outcome:
                self._missing.pop(each.key_id or "", None)
            is_file = self._settings.source.path is not None
            self._read_in(LOOK_MS if is_file else self._settings.refresh_ms)
        if not self._first.is_resolved:
            self._first.resolve(None)

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, KeysUnreadable | MalformedPart):
            self._log.bug("token keys", "keys of tokens were not read", error)
        settings, doublings = self._settings, min(self._failures, MOST_DOUBLINGS)
        self._failures += 1
        delay_ms = min(settings.backoff_ms << doublings, settings.most_backoff_ms)
        what = "those read before are kept" if self._keys is not None else "no token is taken"
        self._log.warn(
            "token keys",
            f"the keys of OAUTHBEARER cannot be read from {settings.source}: {error}; {what}, and "
            f"they are read again in {delay_ms} ms",
        )
        self._read_in(delay_ms)


def _later(found: Checked | Later[Checked]) -> Later[Checked]:
    return found if isinstance(found, Later) else Later.of(found)
