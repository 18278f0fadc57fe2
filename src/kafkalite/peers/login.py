"""The login of one connection to another broker: a mechanism, then its tokens, as requests.

Owns their order and what their answers mean. What a password costs (thousands of hashes for SCRAM)
is done by a worker, never on the loop. Invariant: whoever began is told once that the peer has let
us in, or why not, unless the login was given up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkalite.env.background import Background
from kafkalite.env.dataclasses import dataclass
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import SaslAuthenticateRequest, SaslHandshakeRequest
from kafkalite.security.client_login import Login, LoginFailed

if TYPE_CHECKING:
    from random import Random

VERSION = 1  # of both requests: since then tokens have headers


@dataclass(slots=True, frozen=True)
class Entry:
    """As whom this broker comes to others."""

    login: Login
    random: Random
    background: Background

    def begin(self, say: Callable[[Any], None], done: Callable[[int | str], None]) -> LoggingIn:
        """Logs in: what is to be said to the peer, and then how it ended: how many milliseconds
        that holds, 0 for as long as the connection, or why there is none."""
        logging_in = LoggingIn(self, say, done)
        say(SaslHandshakeRequest(mechanism=self.login.mechanism))
        return logging_in


class LoggingIn:
    """One login under way."""

    def __init__(
        self, entry: Entry, say: Callable[[Any], None], done: Callable[[int | str], None]
    ) -> None:
        self._entry, self._say, self._done = entry, say, done
        self._go_on: Callable[[bytes], bytes | None] | None = None
        self._session_ms = 0
        self._is_over = False
        self.asked_key = SaslHandshakeRequest.API_KEY  # of what is to be answered next

    def give_up(self) -> None:
        self._is_over = True

    def take(self, answer: Any) -> None:
        """The peer's answer to what was said last."""
        if answer.error_code != Error.NONE:
            self._end(self._refusal(answer))
        elif self._go_on is None:
            token, self._go_on = self._entry.login.begin(self._entry.random)
            self._show(token)
        else:
            self._session_ms = answer.session_lifetime_ms
            job = partial(self._go_on, bytes(answer.auth_bytes))
            self._entry.background.submit(job, self._stepped)

    def _refusal(self, answer: Any) -> str:
        if self._go_on is None:
            known = ", ".join(answer.mechanisms)
            return f"{self._entry.login.mechanism} is not enabled there, but {known}"
        return str(answer.error_message)

    def _show(self, token: bytes) -> None:
        self.asked_key = SaslAuthenticateRequest.API_KEY
        self._say(SaslAuthenticateRequest(auth_bytes=token))

    def _stepped(self, outcome: bytes | BaseException | None) -> None:
        if self._is_over:
            return
        if isinstance(outcome, LoginFailed):
            self._end(str(outcome))
        elif isinstance(outcome, BaseException):
            raise outcome
        elif outcome is None:
            self._end(self._session_ms)
        else:
            self._show(outcome)

    def _end(self, how: int | str) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(how)
