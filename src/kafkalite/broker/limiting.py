"""The quotas of one broker's clients, kept at what the metadata says.

Owns the way from the cluster's quotas to it, a slice per turn where there are many. What is said
of a host's name holds for its address, as it is looked up whenever something is said of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.states import QuotaEntity
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices, Steps
from kafkalite.quotas.client_quotas import IP, ClientQuotas
from kafkalite.quotas.host_names import HostNames, address_in

log = logging.getLogger(__name__)

CHANGED_PER_STEP = 8


def follow(
    quotas: ClientQuotas, host_names: HostNames, metadata: Metadata, slices: Slices
) -> Callable[[], None]:
    """All quotas that are there, and from now on what changes, until the result is called."""
    followed = _Followed(quotas, host_names, metadata)
    for entity, values in metadata.image.quotas.items():
        followed.set(entity, values)
    changed = partial(_changed, followed, slices)
    metadata.subscribe(changed)

    def unfollow() -> None:
        metadata.unsubscribe(changed)
        followed.is_over = True

    return unfollow


@dataclass(slots=True)
class _Followed:
    quotas: ClientQuotas
    host_names: HostNames
    metadata: Metadata
    is_over: bool = False

    def set(self, entity: QuotaEntity, values: Mapping[str, float]) -> None:
        self.quotas.set(entity, values)
        name = dict(entity).get(IP)
        if name and values and address_in(name) is None:
            self.host_names.look_up(name).then(partial(self._found, name))

    def _found(self, name: str, address: str | None) -> None:
        self.quotas.is_at(name, address)
        if address is None and not self.is_over:
            log.warning(
                "the quota of new connections from %s holds for nobody: that name cannot be "
                "looked up; set it again once it can", name
            )


def _changed(followed: _Followed, slices: Slices, changes: Changes) -> Later[None] | None:
    if not changes.quotas:
        return None
    return slices.later(_take(followed, list(changes.quotas)))


def _take(followed: _Followed, entities: list[QuotaEntity]) -> Steps[None]:
    for number, entity in enumerate(entities, 1):
        followed.set(entity, followed.metadata.image.quotas.get(entity, {}))
        if number % CHANGED_PER_STEP == 0:
            yield
