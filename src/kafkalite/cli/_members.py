"""What `kafkalite serve --brokers N` runs: a controller and N brokers, each a process of its own.

Owns their settings: addresses in a row, a directory each, and one cluster id, which is written into
the directories of a new cluster as formatting does. Starts nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from kafkalite.config import InvalidSetting
from kafkalite.env.disk import RealDisk
from kafkalite.env.randomness import random_uuid, system_random
from kafkalite.log.checkpoints import read_properties, write_properties
from kafkalite.log.names import META_PROPERTIES, uuid_text

CONTROLLER_ID = 3000
MOST_BROKERS = 64
# What the supervisor says for each member.
OWN = (
    "advertised.listeners", "broker.id", "controller.listener.names",
    "controller.quorum.bootstrap.servers", "controller.quorum.voters", "listeners", "log.dir",
    "log.dirs", "metadata.log.dir", "node.id", "process.roles",
)  # fmt: skip


@dataclass(slots=True, frozen=True)
class Member:
    """One process, and how it is called in the log."""

    node_id: int
    name: str
    directory: str
    settings: dict[str, str]

    @property
    def properties(self) -> str:
        """The file that it is started with."""
        return f"{self.directory}/server.properties"


@dataclass(slots=True, frozen=True)
class Members:
    """All of one cluster."""

    controller: Member
    brokers: list[Member]
    addresses: list[str]


def members_of(
    count: int, host: str, port: int, data_dir: str, given: Mapping[str, str]
) -> Members:
    """Of so many brokers, the first at this port and the controller behind the last; raises
    InvalidSetting."""
    if not 1 <= count <= MOST_BROKERS:
        raise InvalidSetting(f"--brokers {count}: from 1 to {MOST_BROKERS} are started together")
    if port == 0 or port + count > 65535:
        raise InvalidSetting(
            f"--brokers takes a port of --listen and the {count} behind it, so it has to be known: "
            f"{port} does not do"
        )
    theirs = sorted(given.keys() & set(OWN))
    if theirs:
        raise InvalidSetting(f"--brokers says {', '.join(theirs)} itself, for each member")
    shown = f"[{host}]" if ":" in host else host
    at_controller = f"{shown}:{port + count}"
    common = {
        **given,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"{CONTROLLER_ID}@{at_controller}",
    }
    controller = Member(
        CONTROLLER_ID, "controller", f"{data_dir}/controller",
        common | {"process.roles": "controller", "listeners": f"CONTROLLER://{at_controller}"},
    )  # fmt: skip
    addresses = [f"{shown}:{port + number}" for number in range(count)]
    brokers = [
        Member(
            number, f"broker {number}", f"{data_dir}/{number}",
            common | {"process.roles": "broker", "listeners": f"PLAINTEXT://{address}"},
        )
        for number, address in enumerate(addresses, 1)
    ]  # fmt: skip
    return Members(controller, brokers, addresses)


def prepare(members: Members) -> None:
    """Makes the directories and writes what is not there; raises InvalidSetting for data that is
    not such a cluster's, and OSError."""
    disk = RealDisk()
    folder = os.path.dirname(members.controller.directory)
    if disk.exists(f"{folder}/{META_PROPERTIES}"):
        raise InvalidSetting(
            f"{folder} holds the data of one broker, which a cluster of several would not find: "
            "start it without --brokers, or on a new folder"
        )
    cluster_id = _cluster_id(disk, members)
    for each in (members.controller, *members.brokers):
        os.makedirs(each.directory, exist_ok=True)
        if not disk.exists(f"{each.directory}/{META_PROPERTIES}"):
            formatted = {"version": "1", "cluster.id": cluster_id, "node.id": str(each.node_id)}
            write_properties(disk, f"{each.directory}/{META_PROPERTIES}", formatted)
        said = each.settings | {"node.id": str(each.node_id), "log.dirs": each.directory}
        text = "".join(f"{_escaped(key)}={_escaped(said[key])}\n" for key in sorted(said))
        with open(each.properties, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)


def _cluster_id(disk: RealDisk, members: Members) -> str:
    path = f"{members.controller.directory}/{META_PROPERTIES}"
    if disk.exists(path):
        return read_properties(disk, path)["cluster.id"]
    return uuid_text(random_uuid(system_random()))


def _private(path: str, flags: int) -> int:
    """Settings may hold passwords."""
    return os.open(path, flags, 0o600)


def _escaped(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return plain.replace(" ", "\\ ").replace("=", "\\=").replace(":", "\\:").replace("#", "\\#")
