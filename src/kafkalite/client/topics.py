"""Topics made on any Kafka.

Owns the waiting for the new topic: it can be used when `create_topic` returns.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalite.client.admin import Admin
from kafkalite.client.changes import Changes
from kafkalite.client.cluster import Cluster, Patience, TryAgain


def create_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    configs: Mapping[str, str],
    timeout_s: float,
) -> None:
    """ClientFailed says why it is refused."""
    patience = Patience(timeout_s)
    changes = Changes(Admin(cluster, timeout_s=timeout_s))
    while True:
        try:
            changes.create_topic(name, partitions, -1, configs)
            break
        except TryAgain as failure:
            patience.wait_after(failure)
    _wait_for(cluster, name, patience)


def _wait_for(cluster: Cluster, name: str, patience: Patience) -> None:
    """Until every partition has a leader, as far as the broker that is asked knows."""
    patience.renew()
    while True:
        try:
            found = cluster.topic(name, may_create=True)
            if all(leader >= 0 for leader in found.leaders.values()):
                return
            raise TryAgain(f"topic {name} has partitions without leaders")
        except TryAgain as failure:
            patience.wait_after(failure)
