"""What whoever starts a broker or a controller asks of it: topics and access rules.

Owns how a controller's answer is told to somebody who is no client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkalite.broker.authorizing import as_request, first_refusal
from kafkalite.coordinators.cluster.controller import Controller
from kafkalite.coordinators.cluster.events import CreateAcls, CreateTopics
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from kafkalite.security.acl import Acl


class Creating:
    """A broker or a controller, as its owner asks it."""

    @property
    def asked(self) -> Controller:
        """Whoever decides for the cluster."""
        raise NotImplementedError

    def create_topic(
        self, name: str, partitions: int = -1, configs: Mapping[str, str] | None = None
    ) -> Later[KafkaError | None]:
        """Creates a topic as a client would. Filled when it lasts as is configured, with None or
        with why it is refused."""
        settings = [
            CreateTopicsRequest.Config(name=key, value=value)
            for key, value in (configs or {}).items()
        ]
        topic = CreateTopicsRequest.Topic(
            name=name, num_partitions=partitions, replication_factor=-1, configs=settings
        )
        wanted = CreateTopics(CreateTopicsRequest(topics=[topic]))
        return self.asked.submit(wanted).map(_refusal)

    def create_acls(self, acls: Sequence[Acl]) -> Later[KafkaError | None]:
        """The same for access rules."""
        return self.asked.submit(CreateAcls(as_request(acls))).map(first_refusal)


def _refusal(response: CreateTopicsResponse | KafkaError) -> KafkaError | None:
    if isinstance(response, KafkaError):
        return response
    [answer] = response.topics
    code = Error(answer.error_code)
    return None if code is Error.NONE else KafkaError(code, answer.error_message)
