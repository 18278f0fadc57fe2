"""Peers that come in by an encrypted listener: shaken hands with before they are let in.

Owns the handshakes of one server, which stores count for them, and the one line that a failed one
is worth. Invariant: whoever came is let in or has gone, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from kafkalite.env.clock import Clock
from kafkalite.env.handshakes import Handshakes
from kafkalite.env.network import Link
from kafkalite.env.tls_link import TlsFailure, TlsLink
from kafkalite.handlers.call import ANONYMOUS
from kafkalite.server.limits import LimitedLog
from kafkalite.server.other_protocols import recognise

if TYPE_CHECKING:
    import ssl

class Encrypted(Protocol):
    """A listener's part in TLS, as it is now."""

    @property
    def server(self) -> ssl.SSLContext: ...

    def user(self, certificate: bytes | None) -> str | None:
        """The user that a certificate names; raises ValueError when it names none."""
        ...


class Encryption:
    """The encrypted listeners of one server, by their names."""

    def __init__(
        self,
        clock: Clock,
        soon: Callable[[Callable[[], None]], None],
        timeout_ms: int,
        log: LimitedLog,
        listeners: Mapping[str, Encrypted],
    ) -> None:
        self._log = log
        self._listeners = listeners
        self._handshakes = Handshakes(clock, soon, timeout_ms)

    def holds(self, name: str) -> bool:
        return name in self._listeners

    def arrived(
        self, name: str, link: Link, let_in: Callable[[Link], None], gone: Callable[[], None]
    ) -> None:
        """Lets somebody in once the link is encrypted, or tells that there will be none."""

        def done(outcome: TlsLink | TlsFailure) -> None:
            if isinstance(outcome, TlsFailure):
                if not outcome.is_silent:
                    self._tell(name, handshake.link, str(outcome))
                gone()
                return
            try:
                self.principal(name, outcome)
            except ValueError as error:
                self._tell(name, outcome, str(error))
                self._handshakes.dismiss(outcome)
                gone()
            else:
                let_in(outcome)

        handshake = self._handshakes.answer(link, self._listeners[name].server, done)

    def principal(self, name: str, link: Link) -> str:
        """Whom the certificate of a link names; raises ValueError when no rule fits it."""
        if not isinstance(link, TlsLink):
            return ANONYMOUS
        user = self._listeners[name].user(link.peer_certificate)
        return ANONYMOUS if user is None else f"User:{user}"

    def _tell(self, name: str, link: TlsLink, reason: str) -> None:
        host, port = link.peer_address
        self._log.warn(
            "handshake",
            f"Failed authentication with {host}:{port} (SSL handshake failed) on listener {name}: "
            f"{_explained(link, reason)}",
        )

    def stop(self) -> None:
        """Nobody comes in any more."""
        self._handshakes.stop()


def _explained(link: TlsLink, reason: str) -> str:
    """With what is to be done, where that can be seen."""
    if not link.is_foreign:
        return reason
    foreign = recognise(link.head)
    if foreign is not None:
        return f"it speaks {foreign.name}: {foreign.hint}"
    return "it does not speak TLS: set security.protocol=SSL there"
