"""What a test has a broker do wrong, as real ones do now and then: which requests, what, how often.

Owns the rules and their counts, over all lives of the brokers; does nothing by itself (stage.py
does). Rules are added and taken back on any thread; the loop looks at them in the order in which
they came. Invariant: a request meets one rule at most, and no rule more often than it says.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakMethod

from kafkalite.testing.where import Known, Where

if TYPE_CHECKING:
    from kafkalite.protocol.errors import Error

_LOG = logging.getLogger(__name__)

When = Callable[[Any], bool] | Where


class Act(Enum):
    """What becomes of a request."""

    REFUSE = "is answered with an error, and nothing is done"
    DELAY = "is done at once, and its reply comes later"
    THROTTLE = "is done, its reply says so, and the next waits that long (KIP-219)"
    DISCONNECT = "is not done, and its connection ends"
    LOSE_REPLY = "is done, and its connection ends instead of a reply"
    HOLD = "waits, and all behind it on its connection, until it is released"
    # What an explorer chooses, too.
    CHANGE = "is done, and its reply is another one"
    TELL = "is not done, and is replied to"


class Asked(Protocol):
    """A request, as far as a rule looks at it."""

    @property
    def api(self) -> str: ...

    @property
    def message(self) -> Any: ...

    @property
    def version(self) -> int: ...

    @property
    def client_id(self) -> str | None: ...


class Fault:
    """One rule; `with` takes it back at the end, `remove()` does so at once."""

    def __init__(
        self,
        faults: Faults,
        api: str,
        act: Act,
        *,
        times: int | None = None,
        when: When | None = None,
        error: Error | None = None,
        duration_ms: int = 0,
    ) -> None:
        self._faults = faults
        self.api, self.act, self.error, self.duration_ms = api, act, error, duration_ms
        self._left = times
        self._when = when
        self._count = 0
        self._mistake: BaseException | None = None
        self._release: list[Callable[[], None]] = []  # what is held now

    def __repr__(self) -> str:
        return f"<{self.api} {self.act.value}: {self._count} so far>"

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()
        if error is None and self._mistake is not None:
            raise self._mistake

    @property
    def count(self) -> int:
        """How many requests have met it."""
        if self._mistake is not None:
            raise self._mistake
        return self._count

    @property
    def left(self) -> int | None:
        """How many requests it will still be met by; None when there is no end."""
        return self._left

    @property
    def held(self) -> int:
        """How many requests wait for its release now."""
        return len(self._release)

    def remove(self) -> None:
        """No more requests meet it; what it holds goes on."""
        self._faults.remove(self)
        self.release()

    def release(self) -> None:
        """Has what it holds go on; later ones are held again."""
        self._faults.tell(self._let_go)

    def _let_go(self) -> None:
        held, self._release = self._release, []
        for release in held:
            release()

    # --- on the loop ------------------------------------------------------------------------------

    def meets(self, asked: Asked, known: Known) -> bool:
        """Whether it is this request's, which counts then. What `when` raises is the test's: told
        where the rule is looked at."""
        if self._left == 0:
            return False
        try:
            if not self._is_meant(asked, known):
                return False
        # What pytest.fail() raises is no Exception, and must not end the broker's thread either.
        except BaseException as mistake:  # noqa: BLE001 - raised again where it was asked for
            self._mistake = mistake
            _LOG.exception("`when` of a fault failed, so it is not for this %s", self.api)
            return False
        self._count += 1
        if self._left is not None:
            self._left -= 1
        return True

    def _is_meant(self, asked: Asked, known: Known) -> bool:
        if isinstance(self._when, Where):
            return self._when.meets(asked.message, asked.version, asked.client_id, known)
        return self._when is None or self._when(asked.message)

    def holds(self, release: Callable[[], None]) -> None:
        self._release.append(release)

    def holds_no_more(self, release: Callable[[], None]) -> None:
        """It is never done; maybe it is about to be let go."""
        if release in self._release:
            self._release.remove(release)


class Faults:
    """The rules of all brokers of one EmbeddedKafka."""

    def __init__(self, tell: Callable[[Callable[[], None]], None]) -> None:
        """`tell`, a method, has something called on the loop, or not at all when nothing runs. A
        broker that runs has these rules, and must not keep the object that nobody else has."""
        self._tell = WeakMethod(tell)
        self._guard = threading.RLock()
        self._rules: tuple[Fault, ...] = ()  # replaced, never changed: the loop reads it

    def __bool__(self) -> bool:
        return bool(self._rules)

    def tell(self, what: Callable[[], None]) -> None:
        tell = self._tell()
        if tell is not None:
            tell(what)

    def add(self, fault: Fault) -> Fault:
        with self._guard:
            self._rules += (fault,)
        return fault

    def remove(self, fault: Fault) -> None:
        with self._guard:
            self._rules = tuple(each for each in self._rules if each is not fault)

    def clear(self) -> None:
        for fault in self._rules:
            fault.remove()

    def of(self, asked: Asked, known: Known) -> Fault | None:
        """The rule that a request meets."""
        for fault in self._rules:
            if fault.api in (asked.api, ANY) and fault.meets(asked, known):
                return fault
        return None

    def concerns(self, api: str) -> bool:
        return any(fault.api in (api, ANY) for fault in self._rules)


ANY = "*"


def api_name(name: str) -> str:
    """An API as people write it: Produce, produce, PRODUCE, join_group, * for all of them."""
    from kafkalite.protocol import spec

    if name == ANY:
        return ANY
    plain = name.replace("_", "").lower() if isinstance(name, str) else name
    known = {api.name.lower(): api.name for api in map(spec.api, spec.api_files())}
    if plain not in known:
        raise ValueError(f"{name!r} is no API of Kafka: such as Produce, Fetch, JoinGroup")
    return known[plain]


def error_named(error: str | int | Error) -> Error:
    """An error as people write it: its name, or its code."""
    from kafkalite.protocol.errors import Error

    try:
        found = Error(error) if isinstance(error, int) else Error[error.upper()]
    except (KeyError, ValueError, AttributeError):
        found = Error.NONE
    if found is Error.NONE or isinstance(error, bool):
        raise ValueError(
            f"{error!r} is no error of Kafka's protocol: such as NOT_LEADER_OR_FOLLOWER"
        )
    return found


def check_times(times: int | None) -> None:
    """That it is how often something happens."""
    if times is not None and (isinstance(times, bool) or not isinstance(times, int)):
        raise TypeError(f"times={times!r}: expected a whole number, or None for always")
    if times is not None and times < 0:
        raise ValueError(f"times={times!r}: expected 0 or more, or None for always")
