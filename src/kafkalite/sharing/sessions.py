"""Share sessions: what a member reads from this broker, which it need not say again (KIP-932).

Owns the sessions and their epochs; with the connection that it came with a session ends. Reads no
record. Invariant: a member has one session here, which holds the partitions that it
believes it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
MAX_EPOCH = 2**31 - 1

Place = tuple[bytes, int]  # a topic's id and an index
SessionKey = tuple[str, str]  # a group's id and a member's


@dataclass(slots=True, eq=False)
class Session:
    key: SessionKey
    ended: Later[None] = field(default_factory=Later)
    # Whether the next answer has to mention the partition.
    places: dict[Place, bool] = field(default_factory=dict)
    epoch: int = 1

    def next_epoch(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def tells(self, place: Place, *, has_records: bool, has_error: bool) -> bool:
        """Whether an answer about this partition is told; the one after an error is, too."""
        is_due = self.places.get(place, True)
        if place in self.places:
            self.places[place] = has_error
            if has_records:  # it comes last from now on
                self.places[place] = self.places.pop(place)
        return is_due or has_records or has_error


class ShareSessions:
    """Those of one broker, at most `slots` of them."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._sessions: dict[SessionKey, Session] = {}
        self._members: Counter[str] = Counter()  # by group

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, key: SessionKey, places: Iterable[Place]) -> Session:
        """In place of the one that there may be."""
        self.close(key)
        if len(self._sessions) >= self.slots:
            raise _refused(Error.SHARE_SESSION_LIMIT_REACHED)
        session = Session(key, places=dict.fromkeys(places, False))
        self._sessions[key] = session
        self._members[key[0]] += 1
        return session

    def find(self, key: SessionKey) -> Session:
        session = self._sessions.get(key)
        if session is None:
            raise _refused(Error.SHARE_SESSION_NOT_FOUND)
        return session

    def go_on(
        self, key: SessionKey, epoch: int, added: Iterable[Place] = (), gone: Iterable[Place] = ()
    ) -> Session:
        """The session, with what its member changes of it in the epoch that is due."""
        session = self.find(key)
        if session.epoch != epoch:
            raise _refused(Error.INVALID_SHARE_SESSION_EPOCH)
        for place in added:
            session.places.setdefault(place, True)
        for place in gone:
            session.places.pop(place, None)
        session.next_epoch()
        return session

    def close(self, key: SessionKey) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._members[key[0]] -= 1
            if not self._members[key[0]]:
                del self._members[key[0]]
            session.ended.resolve(None)

    def close_all(self) -> None:
        for key in list(self._sessions):
            self.close(key)

    def has_members(self, group_id: str) -> bool:
        return group_id in self._members

    def holds(self, session: Session) -> bool:
        """Whether it is the member's session still."""
        return self._sessions.get(session.key) is session


def _refused(code: Error) -> KafkaError:
    return KafkaError(code)
