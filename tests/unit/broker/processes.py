"""A controller and brokers as they are in processes of their own, on one loop and real sockets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafkalite.broker.controller_server import ControllerServer
from kafkalite.broker.member import MemberBroker
from kafkalite.config import BrokerConfig
from kafkalite.env import Env, real_env
from kafkalite.env.background import ThreadBackground
from kafkalite.env.later import Later, open_waits, watch_waits
from kafkalite.env.loop import new_loop
from kafkalite.env.memory import MemoryDisk
from kafkalite.env.sockets import SocketNetwork
from kafkalite.log.checkpoints import write_properties

CONTROLLER = 3000
PATIENCE_S = 20
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
TIMES = {"broker.session.timeout.ms": "600", "broker.heartbeat.interval.ms": "50"}
SMALL = {
    "offsets.topic.num.partitions": "2", "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2", "transaction.state.log.replication.factor": "1",
}  # fmt: skip


@contextmanager
def every_wait_ends() -> Iterator[None]:
    """With the last of the brokers, that is, and the controller."""
    watch_waits()
    yield
    left = open_waits()
    watch_waits(False)
    assert not left


class Processes:
    """Each has a disk of its own, which outlives it."""

    def __init__(self) -> None:
        self.loop = new_loop()
        asyncio.set_event_loop(self.loop)
        self.background = ThreadBackground(self.loop)
        self.disks: dict[int, MemoryDisk] = {}
        self.controller: ControllerServer | None = None
        self.controller_port = 0
        self.brokers: dict[int, MemberBroker] = {}

    def env_of(self, node_id: int) -> Env:
        env = real_env(self.loop, in_memory=True)
        env.background = self.background
        disk = self.disks.get(node_id)
        if disk is None:
            assert isinstance(env.disk, MemoryDisk)
            disk = self.disks[node_id] = env.disk
            disk.make_directory("/data")
            formatted = {"version": "1", "cluster.id": CLUSTER_ID, "node.id": str(node_id)}
            write_properties(disk, "/data/meta.properties", formatted)
        env.disk = disk
        return env

    def until(self, is_so: Callable[[], Any], what: str = "") -> None:
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < end, f"waited in vain {what}"
            self.loop.run_until_complete(asyncio.sleep(0.005))

    def value(self, later: Later[Any]) -> Any:
        self.until(lambda: later.is_resolved)
        return later.value

    def start_controller(self, **settings: str) -> ControllerServer:
        config = BrokerConfig(
            {
                "process.roles": "controller", "node.id": str(CONTROLLER), "log.dirs": "/data",
                "listeners": f"CONTROLLER://127.0.0.1:{self.controller_port}", **TIMES,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )  # fmt: skip
        made = ControllerServer(self.env_of(CONTROLLER), SocketNetwork(self.loop), config)
        self.controller = made
        assert self.value(made.start()) is None
        self.controller_port = made.server.addresses["CONTROLLER"][1]
        return made

    def new_broker(self, node_id: int, **settings: str) -> MemberBroker:
        config = BrokerConfig(
            {
                "process.roles": "broker", "node.id": str(node_id), "log.dirs": "/data",
                "listeners": "PLAINTEXT://127.0.0.1:0", **TIMES, **SMALL,
                "controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{self.controller_port}",
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )  # fmt: skip
        return MemberBroker(self.env_of(node_id), SocketNetwork(self.loop), config)

    def start(self, node_id: int, **settings: str) -> MemberBroker:
        broker = self.new_broker(node_id, **settings)
        assert self.value(broker.start()) is None
        self.brokers[node_id] = broker
        return broker

    def kill(self, node_id: int) -> None:
        broker = self.brokers.pop(node_id)
        self.value(broker.kill())

    def stop(self, node_id: int) -> None:
        self.value(self.brokers.pop(node_id).stop(0))

    def close(self) -> None:
        for node_id in list(self.brokers):
            self.kill(node_id)
        if self.controller is not None:
            self.value(self.controller.stop(0))
        self.background.close()
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        asyncio.set_event_loop(None)
        self.loop.close()
