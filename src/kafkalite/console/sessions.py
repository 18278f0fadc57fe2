"""Who has logged in: a name and a password that the brokers took, kept while they are used.

Owns the secrets that browsers hold, of which only hashes are kept, how long a session lasts, and
how often somebody may try. Invariant: what is asked of the cluster in a session is asked as its
user; where brokers ask for no login, all are in one session.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafkalite.client.cluster import ClientFailed, Cluster, NotLetIn
from kafkalite.console.clients import Clients
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.security.client_login import Login

MOST_SESSIONS = 1_000
IDLE_SECONDS = 3_600
LONGEST_SECONDS = 12 * 3_600
MOST_FAILURES, FAILURE_SECONDS = 10, 60

Connect = Callable[[Login | None], Cluster]


class TooOften(Exception):
    """Passwords are being tried."""


@dataclass(slots=True)
class Session:
    """user: None where nobody logs in."""

    clients: Clients
    user: str | None
    began_s: float = 0.0
    used_s: float = 0.0


class Sessions:
    """mechanisms: by which a password is shown, the first first; none: brokers ask for no login, or
    somebody is logged in for all."""

    def __init__(
        self,
        connect: Connect,
        mechanisms: Sequence[str],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect, self._mechanisms, self._now_s = connect, mechanisms, now_s
        self._by_hash: dict[bytes, Session] = {}
        self._failures: deque[float] = deque(maxlen=MOST_FAILURES)
        self._lock = threading.Lock()
        self._open = None if mechanisms else Session(Clients(lambda: connect(None)), None)

    @property
    def asks_login(self) -> bool:
        return self._open is None

    def found(self, token: str | None) -> Session | None:
        """None: whoever it is has to log in."""
        if self._open is not None:
            return self._open
        if token is None:
            return None
        now_s = self._now_s()
        with self._lock:
            self._end_old(now_s)
            session = self._by_hash.get(_hash(token))
            if session is not None:
                session.used_s = now_s
            return session

    def log_in(self, user: str, password: str) -> str:
        """What the browser holds from now on; NotLetIn says what the brokers said."""
        self._check_failures()
        login = self._let_in(user, password)
        token = secrets.token_urlsafe(32)
        now_s = self._now_s()
        session = Session(Clients(lambda: self._connect(login)), user, now_s, now_s)
        with self._lock:
            self._end_old(now_s)
            while len(self._by_hash) >= MOST_SESSIONS:
                oldest = min(self._by_hash, key=lambda each: self._by_hash[each].used_s)
                self._by_hash.pop(oldest).clients.close()
            self._by_hash[_hash(token)] = session
        return token

    def _let_in(self, user: str, password: str) -> Login:
        refusal: NotLetIn | None = None
        for mechanism in self._mechanisms:
            login = Login(mechanism, user, password)
            cluster = self._connect(login)
            try:
                cluster.ask_any(MetadataRequest(topics=[], allow_auto_topic_creation=False))
                return login
            except NotLetIn as failure:
                refusal = failure
            finally:
                cluster.close()
        with self._lock:
            self._failures.append(self._now_s())
        raise refusal or ClientFailed("nobody can log in here")

    def _check_failures(self) -> None:
        with self._lock:
            is_full = len(self._failures) == MOST_FAILURES
            if is_full and self._now_s() - self._failures[0] < FAILURE_SECONDS:
                raise TooOften(
                    f"{MOST_FAILURES} logins failed within {FAILURE_SECONDS} s: try again later"
                )

    def log_out(self, token: str | None) -> None:
        with self._lock:
            session = None if token is None else self._by_hash.pop(_hash(token), None)
        if session is not None:
            session.clients.close()

    def _end_old(self, now_s: float) -> None:
        for key, session in list(self._by_hash.items()):
            is_idle = now_s - session.used_s > IDLE_SECONDS
            if is_idle or now_s - session.began_s > LONGEST_SECONDS:
                self._by_hash.pop(key).clients.close()

    def close(self) -> None:
        with self._lock:
            for session in (*self._by_hash.values(), *([self._open] if self._open else [])):
                session.clients.close()
            self._by_hash.clear()


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
