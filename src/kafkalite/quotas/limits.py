"""Which limit holds for whom: of users, client ids, both together, and the default of each.

Owns Apache Kafka's order of precedence. What a client has is counted for the level at which it is
limited: clients of one user share that user's limit, and so do users of one client id. Invariant:
two clients that are counted together have the same limit.
"""

from __future__ import annotations

from collections import Counter

# A name; None for the default of all names; NOBODY where this part is not looked at.
Part = str | None
NOBODY = ""
Key = tuple[str, str]  # a user and a client id that are counted together; NOBODY in place of any

_USER, _CLIENT, _BOTH = (True, False), (False, True), (True, True)


class Limits:
    """Those of one kind."""

    __slots__ = ("_by_entity", "_levels")

    def __init__(self) -> None:
        self._by_entity: dict[tuple[Part, Part], float] = {}
        self._levels: Counter[tuple[bool, bool]] = Counter()

    def __len__(self) -> int:
        return len(self._by_entity)

    def set(self, user: Part, client_id: Part, limit: float | None) -> None:
        """Limits an entity, or no more."""
        entity, level = (user, client_id), (user != NOBODY, client_id != NOBODY)
        is_known = entity in self._by_entity
        if limit is not None:
            self._by_entity[entity] = limit
            self._levels[level] += not is_known
        elif is_known:
            del self._by_entity[entity]
            self._levels[level] -= 1
            if not self._levels[level]:
                del self._levels[level]

    def key(self, user: str, client_id: str) -> Key:
        """With whom a client is counted together."""
        if len(self._levels) < 2:
            level = next(iter(self._levels), _CLIENT)
            return (user if level[0] else NOBODY), (client_id if level[1] else NOBODY)
        if (user, client_id) in self._by_entity or (user, None) in self._by_entity:
            return user, client_id
        if (user, NOBODY) in self._by_entity:
            return user, NOBODY
        if (None, client_id) in self._by_entity or (None, None) in self._by_entity:
            return user, client_id
        return (user, NOBODY) if (None, NOBODY) in self._by_entity else (NOBODY, client_id)

    def of(self, key: Key) -> float | None:
        """None: it is not limited, as a client without a name is not by client ids alone."""
        user, client_id = key
        entities: tuple[tuple[Part, Part], ...] = ()
        if user and client_id:
            entities = (user, client_id), (user, None), (None, client_id), (None, None)
        elif user:
            entities = (user, NOBODY), (None, NOBODY)
        elif client_id:
            entities = (NOBODY, client_id), (NOBODY, None)
        found = self._by_entity
        return next((found[each] for each in entities if each in found), None)
