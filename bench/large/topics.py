"""Large requests about topics and their settings."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.large.stage import TIMEOUT_MS, Stage, errors_in, produce_to_all, row
from kafkalite.protocol.messages import (
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)

TOPIC = 2  # as resources of configurations count


@row("create a topic of 5,000 partitions")
def create_large(stage: Stage) -> Iterator[None]:
    name = stage.name("made")
    yield
    stage.create({name: stage.sizes.partitions})
    yield


@row("create 300 topics of 10 partitions")
def create_many(stage: Stage) -> Iterator[None]:
    names = [stage.name("made") for _ in range(stage.sizes.small_topics)]
    yield
    stage.create(dict.fromkeys(names, 10))
    yield


@row("5,000 partitions more for a topic")
def more_partitions(stage: Stage) -> Iterator[None]:
    name = stage.name("grown")
    stage.create({name: 1})
    yield
    asked = CreatePartitionsRequest.Topic(
        name=name, count=stage.sizes.partitions + 1, assignments=None
    )
    answer = stage.ask(CreatePartitionsRequest(topics=[asked], timeout_ms=TIMEOUT_MS), 3)
    assert not errors_in(answer.results), answer
    stage.wait_for(name)
    yield


@row("delete a topic of 5,000 partitions")
def delete_large(stage: Stage) -> Iterator[None]:
    name = stage.name("gone")
    stage.create({name: stage.sizes.partitions})
    produce_to_all(stage, name, stage.sizes.partitions)
    yield
    answer = stage.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS), 5)
    assert not errors_in(answer.responses), answer
    time.sleep(1)
    yield


@row("delete 300 topics of 10 partitions")
def delete_many(stage: Stage) -> Iterator[None]:
    names = [stage.name("gone") for _ in range(stage.sizes.small_topics)]
    stage.create(dict.fromkeys(names, 10))
    yield
    answer = stage.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=TIMEOUT_MS), 5)
    assert not errors_in(answer.responses), answer
    time.sleep(1)
    yield


@row("metadata of 10,000 topics")
def metadata_of_all(stage: Stage) -> Iterator[None]:
    stage.many_topics()
    yield
    assert len(stage.ask(MetadataRequest(topics=None), 12).topics) >= stage.sizes.topics
    yield


@row("metadata of 200,000 names that are not there")
def metadata_of_nothing(stage: Stage) -> Iterator[None]:
    names = [MetadataRequest.Topic(name=f"no-{number}") for number in range(stage.sizes.names)]
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    yield
    assert len(stage.ask(request, 12).topics) == stage.sizes.names
    yield


@row("describe 10,000 topics a page at a time")
def describe_topics(stage: Stage) -> Iterator[None]:
    names = stage.many_topics()
    topics = [DescribeTopicPartitionsRequest.Topic(name=name) for name in names]
    yield
    request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=2_000)
    assert stage.ask(request, 0).topics
    yield


@row("settings of 1,000 topics")
def describe_configs(stage: Stage) -> Iterator[None]:
    resources = [
        DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name=name)
        for name in stage.many_topics()[:1_000]
    ]
    yield
    answer = stage.ask(DescribeConfigsRequest(resources=resources, include_synonyms=True), 4)
    assert not errors_in(answer.results)
    yield


@row("change the settings of 1,000 topics")
def alter_configs(stage: Stage) -> Iterator[None]:
    config = IncrementalAlterConfigsRequest.Config(
        name="retention.ms", config_operation=0, value="86400000"
    )
    resources = [
        IncrementalAlterConfigsRequest.Resource(
            resource_type=TOPIC, resource_name=name, configs=[config]
        )
        for name in stage.many_topics()[:1_000]
    ]
    yield
    answer = stage.ask(IncrementalAlterConfigsRequest(resources=resources), 1)
    assert not errors_in(answer.responses)
    yield
