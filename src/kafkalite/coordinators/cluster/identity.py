"""Which cluster this is: the id in the log directories, or a new one.

Owns the choice alone; `log.directory` writes it into every directory and refuses strangers.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.env import Env
from kafkalite.env.randomness import random_uuid
from kafkalite.log.checkpoints import read_properties
from kafkalite.log.names import META_PROPERTIES, uuid_text


def find_cluster_id(env: Env, directories: Iterable[str]) -> str:
    """The id that the directories were formatted with, else one that nobody has."""
    for directory in directories:
        path = f"{directory.rstrip('/')}/{META_PROPERTIES}"
        if env.disk.exists(path):
            found = read_properties(env.disk, path).get("cluster.id")
            if found:
                return found
    return uuid_text(random_uuid(env.random))
