"""All that one broker shares: partitions, each for one group, and the sessions of members.

Owns which partitions are shared now: from the first member that reads until the last one has gone,
or the leader. Invariant: of one partition and one group there is one window.
"""

from __future__ import annotations

from functools import partial

from kafkalite.coordinators.shares.persister import Persister
from kafkalite.coordinators.shares.records import ShareKey
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.replication.partition import Partition
from kafkalite.sharing.sessions import Session, ShareSessions
from kafkalite.sharing.settings import ShareSettings
from kafkalite.sharing.shared_partition import SharedPartition


class Sharing:
    def __init__(
        self, env: Env, persister: Persister, settings: ShareSettings, session_slots: int
    ) -> None:
        self.settings = settings
        self.sessions = ShareSessions(session_slots)
        self._env, self._persister = env, persister
        self._partitions: dict[str, dict[ShareKey, SharedPartition]] = {}  # by group

    def share(self, key: ShareKey, partition: Partition) -> SharedPartition:
        """The partition as the group has it, which may yet be loading."""
        shared = self.known(key)
        if shared is not None and shared.partition is not partition:
            shared.close()
            shared = None
        if shared is None:
            shared = SharedPartition(
                self._env, key, partition, self._persister, self.settings, self._forget
            )
            self._partitions.setdefault(key.group_id, {})[key] = shared
            shared.load()
        return shared

    def known(self, key: ShareKey) -> SharedPartition | None:
        """One that is shared now; not one whose leader has changed."""
        shared = self._partitions.get(key.group_id, {}).get(key)
        if shared is not None and not shared.is_current:
            shared.close()
            return None
        return shared

    def end(self, session: Session) -> None:
        """A member has gone: what it had is free. Where it was the last one of its group here,
        nothing is kept of what the group shares."""
        if not self.sessions.holds(session):
            return
        group_id, member = session.key
        self.sessions.close(session.key)
        found = [self.known(ShareKey(group_id, *place)) for place in session.places]
        released = Later.all([shared.release(member) for shared in found if shared is not None])
        released.then(lambda _: self._forget_deserted(group_id))

    def _forget_deserted(self, group_id: str) -> None:
        """What was said last may be on its way still: whoever came next would read a state
        without it."""
        if not self.sessions.has_members(group_id):
            for shared in list(self._partitions.get(group_id, {}).values()):
                shared.settled().then(partial(self._forget_when_deserted, shared))

    def _forget_when_deserted(self, shared: SharedPartition, _: None) -> None:
        if not self.sessions.has_members(shared.key.group_id):
            shared.close()

    def stop(self) -> None:
        self.sessions.close_all()
        for of_group in list(self._partitions.values()):
            for shared in list(of_group.values()):
                shared.close()

    def _forget(self, shared: SharedPartition) -> None:
        of_group = self._partitions.get(shared.key.group_id, {})
        if of_group.get(shared.key) is shared:
            del of_group[shared.key]
            if not of_group:
                del self._partitions[shared.key.group_id]
