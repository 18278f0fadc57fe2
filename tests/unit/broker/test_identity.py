"""Which cluster a start belongs to, and what is said when nothing tells."""

from __future__ import annotations

import pytest

from kafkalite.broker.identity import find_cluster_id
from kafkalite.env import manual_env


@pytest.mark.parametrize("has_metadata", [False, True])
def test_a_new_id_is_told_only_where_a_cluster_was_before(
    caplog: pytest.LogCaptureFixture, *, has_metadata: bool
) -> None:
    """Clients notice that a cluster has another id; a new cluster has nothing to say."""
    env = manual_env()
    if has_metadata:
        env.disk.make_directory("/data")
        env.disk.make_directory("/data/__cluster_metadata-0")
    cluster_id = find_cluster_id(env, ["/data/"])
    assert [cluster_id in line for line in caplog.messages] == [True] * has_metadata
