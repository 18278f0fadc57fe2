"""Which cluster this is: the id in the log directories, or a new one.

Owns the choice alone; `log.directory` writes it into every directory and refuses strangers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress

from kafkalite.env import Env
from kafkalite.env.randomness import random_uuid
from kafkalite.log.checkpoints import CorruptFile, read_properties
from kafkalite.log.names import META_PROPERTIES, METADATA_DIRECTORY, uuid_text

logger = logging.getLogger(__name__)


def find_cluster_id(env: Env, directories: Iterable[str]) -> str:
    """The id that the directories were formatted with, else one that nobody has."""
    paths = [directory.rstrip("/") for directory in directories]
    for directory in paths:
        path = f"{directory}/{META_PROPERTIES}"
        with suppress(CorruptFile):  # whoever takes the directory names it
            found = read_properties(env.disk, path) if env.disk.exists(path) else {}
            if found.get("cluster.id"):
                return found["cluster.id"]
    cluster_id = uuid_text(random_uuid(env.random))
    for directory in paths:
        if env.disk.exists(f"{directory}/{METADATA_DIRECTORY}"):
            logger.warning(
                "no %s says which cluster %s is of: its id is %s from now on; clients that knew it"
                " by another will notice, so rather bring the file back from a copy",
                META_PROPERTIES, directory, cluster_id,
            )  # fmt: skip
    return cluster_id
