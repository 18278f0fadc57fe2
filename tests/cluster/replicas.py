"""Whether the replicas of each partition are the same files, byte for byte.

Reads the directories of running brokers, when nobody writes: what comes last may be on its way, so
whoever asks asks again. Offsets, checksums and leader epochs are in the bytes that are compared;
the files beside them are not, which brokers of ours write when they are synced.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.cluster.nodes import Cluster


def differing(cluster: Cluster, partitions: dict[str, int]) -> list[str]:
    """Of these topics, by their numbers of partitions."""
    return [
        why
        for topic, count in partitions.items()
        for index in range(count)
        for why in _differing(cluster, f"{topic}-{index}")
    ]


def _differing(cluster: Cluster, name: str) -> Iterator[str]:
    folders = {node_id: node.data / name for node_id, node in cluster.brokers.items()}
    away = [node_id for node_id, folder in folders.items() if not folder.is_dir()]
    if away:
        yield f"{name} is not at {away}"
        return
    logs = {node_id: log_of(folder) for node_id, folder in folders.items()}
    first, other = min(logs.values(), key=len), max(logs.values(), key=len)
    if any(each != first for each in logs.values()):
        same = next((n for n, (a, b) in enumerate(zip(first, other, strict=False)) if a != b),
                    len(first))  # fmt: skip
        sizes = {node_id: len(each) for node_id, each in logs.items()}
        yield f"{name} differs from byte {same} on: sizes {sizes}"


def log_of(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(folder.glob("*.log")))
