"""The cluster as one broker knows it from within, in the words of who asks from without.

Owns what of a survey needs no question: brokers and partitions by the metadata, and offsets of the
partitions that this broker leads. Those of others are left to them to tell.
"""

from __future__ import annotations

from kafkalite.broker.broker import Broker as Inner
from kafkalite.client.survey import Broker, Partition, Survey, Topic
from kafkalite.coordinators.cluster.states import Topic as Known
from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.env.slicing import Steps

PARTITIONS_PER_STEP = 64


def begin_survey(broker: Inner) -> Survey:
    metadata = broker.metadata
    image = metadata.image
    controller = metadata.controller_id
    return Survey(
        at_ms=broker.env.clock.now_ms(),
        cluster_id=broker.cluster_id,
        controller=-1 if controller is None else controller,
        brokers=[
            Broker(node_id, end.host, end.port, image.brokers[node_id].rack)
            for node_id in image.live_brokers()
            for end in image.brokers[node_id].endpoints[:1]
        ],
        topics={},
    )


def look_at_topics(found: Survey, broker: Inner) -> Steps[None]:
    topics = sorted(broker.metadata.image.topics.items())
    left = PARTITIONS_PER_STEP
    for name, known in topics:
        topic = found.topics[name] = Topic(name, name in INTERNAL_TOPICS, {})
        for index, partition in _partitions(broker, known):
            topic.partitions[index] = partition
            left -= 1
            if not left:
                left = PARTITIONS_PER_STEP
                yield
        topic.cleanup_policy = _cleanup(broker, name)


def _partitions(broker: Inner, known: Known) -> list[tuple[int, Partition]]:
    states = sorted(known.partitions.items())
    found = [
        (index, Partition(state.leader, list(state.replicas), list(state.isr)))
        for index, state in states
    ]
    for index, partition in found:
        held = broker.partitions.get(known.name, index)
        if held is not None and held.is_leader:
            partition.begins = held.log.log_start_offset
            partition.ends = held.high_watermark
    return found


def _cleanup(broker: Inner, name: str) -> str:
    return ",".join(broker.known.config_of(name).cleanup_policy)
