"""What is to run, and what a test holds in its hands over all lives of it.

Owns the settings that each broker of a plan gets. Starts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkalite.security.acl import Acl
    from kafkalite.testing.chosen import Explored
    from kafkalite.testing.clock import Shift
    from kafkalite.testing.faults import Faults
    from kafkalite.testing.observing import Observers
    from kafkalite.testing.profiles import Profile
    from kafkalite.testing.secured import Secured

MEMORY = "/memory"
CONTROLLER = 1  # its id
# Of brokers in memory, whose internal topics are opened again by each restore: a tenth of Kafka's
# 50, and enough for each of several brokers to coordinate.
FEW_PARTITIONS = {
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
}


class BrokerFailed(RuntimeError):
    """The broker could not do what it was asked to; the cause is chained."""


# Its partitions, -1 for the broker's own number, and its configs.
TopicPlan = tuple[int, dict[str, str]]


@dataclass(slots=True)
class Plan:
    """What is to run."""

    data_dir: str | None
    topics: dict[str, TopicPlan]
    settings: dict[str, str]
    host: str
    ports: list[int]
    profile: Profile | None = None  # of a release whose versions they speak
    secured: Secured | None = None  # how clients log in
    acls: tuple[Acl, ...] = ()  # that are there from the beginning
    is_counted: bool = False  # whether brokers count what they do
    racks: tuple[str, ...] = ()  # of each broker, or none

    @property
    def names_directories(self) -> bool:
        """Whether the settings say themselves where data lies."""
        return not self.settings.keys().isdisjoint(("log.dirs", "log.dir"))

    @property
    def is_in_memory(self) -> bool:
        return self.data_dir is None and not self.names_directories

    def config_of(self, node_id: int) -> dict[str, str]:
        """The settings of one of the brokers."""
        from kafkalite.testing.folder import broker_directory

        host = f"[{self.host}]" if ":" in self.host else self.host
        protocol = "PLAINTEXT" if self.secured is None else self.secured.protocol
        directory = broker_directory(self.data_dir or MEMORY, node_id, len(self.ports))
        return {
            **({} if "broker.id" in self.settings else {"node.id": str(node_id)}),
            "listeners": f"{protocol}://{host}:{self.ports[node_id - 1]}",
            **({} if self.names_directories else {"log.dirs": directory}),
            **({"broker.rack": self.racks[node_id - 1]} if self.racks else {}),
            **(FEW_PARTITIONS if self.is_in_memory else {}),
            **(self.settings if self.secured is None else self.secured.settings(self.settings)),
        }


@dataclass(slots=True)
class Controls:
    """What a test holds in its hands over all lives of its brokers."""

    shift: Shift
    faults: Faults
    observers: Observers
    explored: Explored
