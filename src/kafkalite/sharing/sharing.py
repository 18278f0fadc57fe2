"""All that one broker shares: partitions, each for one group, and the sessions of members.

Owns which partitions are shared now: from the first member that reads until the last one has gone,
or the leader. Invariants: of one partition and one group there is one window; what a member had in
a session is free before it has anything in the next one.
"""

from __future__ import annotations

from functools import partial

from kafkalite.coordinators.shares.persister import Persister
from kafkalite.coordinators.shares.records import ShareKey
from kafkalite.env import Env
from kafkalite.env.later import Later
from kafkalite.env.slicing import LOOKS_PER_STEP, Steps
from kafkalite.protocol.errors import KafkaError
from kafkalite.replication.partition import Partition
from kafkalite.sharing.sessions import Session, SessionKey, ShareSessions
from kafkalite.sharing.settings import ShareSettings
from kafkalite.sharing.shared_partition import SharedPartition

Released = list[Later[KafkaError | None]]  # each filled once that is written


class Sharing:
    def __init__(
        self, env: Env, persister: Persister, settings: ShareSettings, session_slots: int
    ) -> None:
        self.settings = settings
        self.sessions = ShareSessions(session_slots)
        self._env, self._persister = env, persister
        self._partitions: dict[str, dict[ShareKey, SharedPartition]] = {}  # by group
        self._freeing: dict[str, dict[str, Later[Released]]] = {}  # by group and member

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
        freed = self.freed(session.key).then_ask(
            lambda _: self._env.slices.later(self._free(session))
        )
        self._freeing.setdefault(group_id, {})[member] = freed

        def over() -> None:
            freeing = self._freeing.get(group_id, {})
            if freeing.get(member) is freed:
                del freeing[member]
            if not freeing:
                self._freeing.pop(group_id, None)

        def told(released: Released) -> None:
            over()
            Later.all(released).then(lambda _: self._forget_deserted(group_id))

        def mistaken(error: Exception) -> None:
            over()
            raise error

        freed.then(told, mistaken)

    def freed(self, key: SessionKey) -> Later[Released]:
        """Filled once nothing is left of what a member had in sessions that have ended."""
        return self._freeing.get(key[0], {}).get(key[1]) or Later.of([])

    def _free(self, session: Session) -> Steps[Released]:
        """A slice per turn of all that go in the same moment."""
        group_id, member = session.key
        released: Released = []
        for place in list(session.places):  # an answer on its way may change their order
            shared = self.known(ShareKey(group_id, *place))
            if shared is not None:
                released.append((yield from shared.release(member)))
            yield
        return released

    def _forget_deserted(self, group_id: str) -> None:
        """What was said last may be on its way still: whoever came next would read a state
        without it."""
        if not self.sessions.has_members(group_id) and group_id not in self._freeing:
            self._env.slices.run(self._forgotten(group_id), lambda _: None)

    def _forgotten(self, group_id: str) -> Steps[None]:
        for count, shared in enumerate(list(self._partitions.get(group_id, {}).values()), 1):
            if self.sessions.has_members(group_id):
                return
            shared.settled().then(partial(self._forget_when_deserted, shared))
            if count % LOOKS_PER_STEP == 0:
                yield

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
