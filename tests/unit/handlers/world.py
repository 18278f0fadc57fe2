"""A cluster without sockets: a controller and brokers over memory and a clock that stands still.

What is asked goes through the codec both ways, as it would over a connection, so a handler's answer
is known to have bytes in the version that was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from kafkalite import handlers
from kafkalite.broker.authorizing import authorizer_of, follow
from kafkalite.broker.log_configs import log_config, log_settings
from kafkalite.broker.replicas import Replicas
from kafkalite.broker.replicating import Replicating
from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.auto_creation import AutoCreation
from kafkalite.coordinators.cluster.brokers import RegisterBroker
from kafkalite.coordinators.cluster.configs import apply_dynamic_config
from kafkalite.coordinators.cluster.local_controller import LocalController
from kafkalite.coordinators.cluster.metadata import Metadata
from kafkalite.coordinators.cluster.states import TOPIC, EndPoint
from kafkalite.env import Env, manual_env
from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.env.memory import MemoryDisk
from kafkalite.handlers.call import Call, Encoded
from kafkalite.handlers.context import Context
from kafkalite.handlers.fetch_sessions import FetchSessions
from kafkalite.log.manager import LogManager
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import CreateTopicsRequest, message_class
from kafkalite.quotas.client_quotas import ClientQuotas
from kafkalite.quotas.permits import mutations
from kafkalite.replication.partitions import Partitions
from kafkalite.replication.waiting import Waiting
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.error_reply import error_reply
from kafkalite.server.guard import guarded
from kafkalite.server.limits import LimitedLog
from tests.unit.handlers.in_steps import settled

TURNS = 1_000  # of the loop that a request may take, where time stands still
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"


def encoded(answer: Any, version: int) -> bytearray:
    """As it would come over a connection."""
    parts: list[Any] = []
    codec.encoder(type(answer), version)(answer, parts)
    return bytearray().join(
        part.read() if isinstance(part, FileRange) else bytes(part) for part in parts
    )


class Node:
    """One broker of the world."""

    def __init__(self, env: Env, node_id: int, settings: dict[str, str]) -> None:
        self.env = env
        directories = [f"/{node_id}/{name}" for name in ("a", "b")]
        self.config = BrokerConfig(
            {"node.id": str(node_id), "log.dirs": ",".join(directories), **settings}
        )
        self.partitions = Partitions(node_id)
        self.logs = LogManager(
            env,
            directories,
            node_id=node_id,
            cluster_id=CLUSTER_ID,
            settings=log_settings(self.config),
            config_of=lambda topic: log_config(
                self.config, self.context.metadata.image.config(TOPIC, topic)
            ),
        )
        self.context = Context(
            env, self.config, node_id, CLUSTER_ID, self.partitions, Waiting(env.clock),
            FetchSessions(100, env.random),
            ClientQuotas(self.config, env.clock, mutations(self.config, env.clock)),
        )
        self.context.logs = self.logs

    def join(
        self, metadata: Metadata, controller: LocalController, way_to: Callable[[int], Way]
    ) -> None:
        """Opens its logs, registers and follows the metadata, as a broker does at its start."""
        node_id = self.context.node_id
        self.context.metadata, self.context.controller = metadata, controller
        self.context.auto_creation = AutoCreation(metadata, controller, self.config)
        apply_dynamic_config(metadata.image, self.config)
        authorizer = authorizer_of(self.config, LimitedLog(self.env.clock))
        if authorizer is not None:
            self.context.authorizer = authorizer
            follow(authorizer, metadata, self.env.slices)
        self.logs.start()
        controller.decide(
            RegisterBroker(
                node_id,
                [EndPoint("PLAINTEXT", "", 9091 + node_id, 0)],
                self.config.get_optional_str("broker.rack"),
                [each.directory_id for each in self.logs.directories],
                all(each.was_clean for each in self.logs.directories),
            )
        )
        self.replicating = Replicating(
            self.env, self.config, self.partitions, metadata, controller,
            lambda node_id, _: way_to(node_id),
        )  # fmt: skip
        self.context.alter_in_sync = self.replicating.ask
        self.replicas = Replicas(
            metadata, controller, self.config, self.partitions, self.logs, self.replicating
        )
        self.replicating.start()
        self.replicas.start()


class Way:
    """What one broker asks another, without a link: answered in a turn of its own."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world, self.node_id = world, node_id

    def ask(self, request: Any, versions: range) -> Later[Any]:
        answer: Later[Any] = Later()
        version = versions.stop - 1
        self.world.clock.call_later(0, lambda: self._ask(request, version, answer))
        return answer

    def _ask(self, request: Any, version: int, answer: Later[Any]) -> None:
        def told(outcome: Any) -> None:
            outcome = settled(outcome)
            if isinstance(outcome, Later):
                outcome.then(told)
            elif self.node_id in world.unreachable:
                answer.resolve(KafkaError(Error.NETWORK_EXCEPTION))
            else:
                answer.resolve(codec.decode(cls, version, encoded(outcome, version)))

        world, cls = self.world, message_class(f"{type(request).SPEC.api.name}Response")
        node = world.nodes.get(self.node_id)
        handler = handlers.handler(request.API_KEY)
        assert handler is not None
        if node is None or self.node_id in world.unreachable:
            answer.resolve(KafkaError(Error.NETWORK_EXCEPTION))
            return
        asked = codec.decode(type(request), version, bytearray(codec.encode(request, version)))
        call = Call(request.API_KEY, version, 1, "broker-fetcher", world.connection)
        told(handler(node.context, call, asked))


class World:
    """Brokers by id; the first is the controller."""

    def __init__(
        self,
        node_ids: tuple[int, ...] = (1,),
        settings: dict[str, str] | None = None,
        disk: MemoryDisk | None = None,
        own: Mapping[int, dict[str, str]] = MappingProxyType({}),
    ) -> None:
        """With settings of all, and of some that are their own."""
        self.env = manual_env(7, disk)
        self.unreachable: set[int] = set()  # for other brokers
        assert isinstance(self.env.clock, ManualClock)
        self.clock = self.env.clock
        self.nodes = {
            each: Node(self.env, each, {**(settings or {}), **own.get(each, {})})
            for each in node_ids
        }
        first = self.nodes[node_ids[0]]
        self.context = first.context
        self.connection = ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.9", 40000))
        for node in self.nodes.values():
            node.logs.take()
        home = first.logs.directories[0].home
        self.metadata = Metadata(CLUSTER_ID)
        self.controller = LocalController(self.env, home, first.config, self.metadata)
        self.controller.read()
        self.controller.open()
        for node in self.nodes.values():
            node.join(self.metadata, self.controller, partial(Way, self))

    def ask(self, request: Any, version: int, node_id: int | None = None) -> Any:
        """The answer of a broker, the first unless one is named."""
        api = type(request).SPEC.api
        handler = handlers.handler(api.key)
        assert handler is not None, f"{api.name} has no handler"
        context = self.context if node_id is None else self.nodes[node_id].context
        if context.authorizer is not None:
            handler = guarded(handler, api, version, self.connection.kind)
        asked = codec.decode(type(request), version, bytearray(codec.encode(request, version)))
        call = Call(api.key, version, 1, "a-client", self.connection)
        try:
            answer = settled(handler(context, call, asked))
        except KafkaError as error:
            answer = error_reply(asked, version, error.code, error.message)
        if isinstance(answer, Later):
            for _ in range(TURNS):
                if not answer.is_resolved:
                    self.clock.advance(0)
            assert answer.is_resolved, f"{api.name} is not answered yet"
            answer = settled(answer.value)
        if isinstance(answer, KafkaError):
            answer = error_reply(asked, version, answer.code, answer.message)
        cls = message_class(f"{api.name}Response")
        if isinstance(answer, Encoded):
            return codec.decode(cls, version, answer.body)
        assert type(answer) is cls
        return codec.decode(cls, version, encoded(answer, version))

    def create(self, name: str, partitions: int = 1, factor: int = 1, **settings: str) -> bytes:
        """Creates a topic (settings with underscores for dots) and returns its id."""
        topic = CreateTopicsRequest.Topic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[
                CreateTopicsRequest.Config(name=key.replace("_", "."), value=value)
                for key, value in settings.items()
            ],
        )
        (answer,) = self.ask(CreateTopicsRequest(topics=[topic]), 7).topics
        assert answer.error_code == 0, answer
        topic_id: bytes = answer.topic_id
        return topic_id

    def close(self) -> None:
        """A clean stop of all brokers."""
        for node in self.nodes.values():
            node.replicating.stop()
            node.replicas.stop()
            node.logs.close()
        self.controller.close()
