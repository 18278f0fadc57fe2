"""What handlers work on: the rooms below them, as the composition root has tied them together.

Owns nothing and decides nothing. One Context serves all requests of one broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkalite.config.broker import BrokerConfig
from kafkalite.env import Env
from kafkalite.handlers.fetch_sessions import FetchSessions
from kafkalite.replication.partitions import Partitions
from kafkalite.replication.waiting import Waiting


@dataclass(slots=True)
class Context:
    """References, filled in by broker.py."""

    env: Env
    config: BrokerConfig
    node_id: int
    cluster_id: str
    partitions: Partitions
    waiting: Waiting
    fetch_sessions: FetchSessions
    cluster: Any = None
    groups: Any = None
    transactions: Any = None
    logs: Any = None
