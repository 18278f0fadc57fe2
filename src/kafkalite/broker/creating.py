"""What whoever starts a broker asks of it: topics as a client would create them.

Owns how a controller's answer is told to somebody who is no client.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalite.coordinators.cluster.controller import Controller
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, CreateTopicsResponse


def created(
    controller: Controller, name: str, partitions: int, configs: Mapping[str, str] | None
) -> Later[KafkaError | None]:
    """None once the topic lasts as is configured, or why it is refused."""
    settings = [
        CreateTopicsRequest.Config(name=key, value=value) for key, value in (configs or {}).items()
    ]
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=-1, configs=settings
    )
    asked = CreateTopics(CreateTopicsRequest(topics=[topic]))
    return controller.submit(asked).map(_refusal)


def _refusal(response: CreateTopicsResponse | KafkaError) -> KafkaError | None:
    if isinstance(response, KafkaError):
        return response
    [answer] = response.topics
    code = Error(answer.error_code)
    return None if code is Error.NONE else KafkaError(code, answer.error_message)
