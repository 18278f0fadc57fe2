"""The quotas of one broker's clients, kept at what the metadata says.

Owns the way from the cluster's quotas to it, a slice per turn where there are many.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.states import QuotaEntity
from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices, Steps
from kafkalite.quotas.client_quotas import ClientQuotas

CHANGED_PER_STEP = 64


def follow(quotas: ClientQuotas, metadata: Metadata, slices: Slices) -> Callable[[], None]:
    """All quotas that are there, and from now on what changes, until the result is called."""
    for entity, values in metadata.image.quotas.items():
        quotas.set(entity, values)
    changed = partial(_changed, quotas, metadata, slices)
    metadata.subscribe(changed)
    return partial(metadata.unsubscribe, changed)


def _changed(
    quotas: ClientQuotas, metadata: Metadata, slices: Slices, changes: Changes
) -> Later[None] | None:
    if not changes.quotas:
        return None
    return slices.later(_take(quotas, metadata, list(changes.quotas)))


def _take(quotas: ClientQuotas, metadata: Metadata, entities: list[QuotaEntity]) -> Steps[None]:
    for number, entity in enumerate(entities, 1):
        quotas.set(entity, metadata.image.quotas.get(entity, {}))
        if number % CHANGED_PER_STEP == 0:
            yield
