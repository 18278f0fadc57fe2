"""Topics made on any Kafka.

Owns the waiting for the new topic: it can be used when `create_topic` returns.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalite.client.cluster import ClientFailed, Cluster, Patience, TryAgain
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreateTopicsRequest, DescribeClusterRequest

CREATION_TIMEOUT_MS = 30_000


def create_topic(
    cluster: Cluster,
    name: str,
    partitions: int,
    configs: Mapping[str, str],
    timeout_s: float,
) -> None:
    """ClientFailed says why it is refused."""
    patience = Patience(timeout_s)
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=-1,
        configs=[CreateTopicsRequest.Config(name=key, value=configs[key]) for key in configs],
    )  # fmt: skip
    request = CreateTopicsRequest(topics=[topic], timeout_ms=CREATION_TIMEOUT_MS)
    while True:
        try:
            [answer] = cluster.ask(_controller(cluster), request).topics
            _check(name, Error(answer.error_code), answer.error_message)
            break
        except TryAgain as failure:
            patience.wait_after(failure)
    _wait_for(cluster, name, patience)


def _controller(cluster: Cluster) -> int:
    answer = cluster.ask_any(DescribeClusterRequest())
    for each in answer.brokers:
        cluster.learn(each.broker_id, (each.host, each.port))
    return int(answer.controller_id)


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


def _check(name: str, code: Error, message: str | None) -> None:
    if code is not Error.NONE:
        kind = TryAgain if code.is_retriable else ClientFailed
        raise kind(f"topic {name} is not created: {code.name}: {message or code.message}")
