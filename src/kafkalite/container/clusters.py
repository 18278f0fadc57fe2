"""Gives a new cluster the id that somebody has chosen, as formatting its directories does."""

from __future__ import annotations

import os

META_PROPERTIES = "meta.properties"


def name_cluster(log_dirs: str, cluster_id: str | None) -> None:
    """Writes the id into each directory that is of no cluster yet; raises OSError."""
    directories = [each.strip() for each in log_dirs.split(",") if each.strip()]
    if cluster_id is None or any(map(_is_of_a_cluster, directories)):
        return
    for directory in directories:
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, META_PROPERTIES)
        with open(f"{path}.tmp", "w", encoding="utf-8") as file:
            file.write(f"version=1\ncluster.id={cluster_id}\n")
        os.replace(f"{path}.tmp", path)


def _is_of_a_cluster(directory: str) -> bool:
    return os.path.exists(os.path.join(directory, META_PROPERTIES))
