"""Transactions as the page shows them: those of coordinators, and those that hang in partitions."""

from __future__ import annotations

import time
from typing import Any

from kafkalite.client import transactions
from kafkalite.client.admin import Admin
from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.console.given import Given

PATIENCE_SECONDS = 5.0
MOST_DESCRIBED = 200
MOST_SECONDS = 5.0  # of asking for more of each
UNDER_WAY = ("Ongoing", "PrepareCommit", "PrepareAbort")


def listed(cluster: Cluster, given: Given) -> dict[str, Any]:
    """All transactional ids; of those under way since when, where, and whether for longer than
    they may, as far as that is told in time."""
    admin = Admin(cluster, timeout_s=PATIENCE_SECONDS)
    rows, described, until_s = [], 0, time.monotonic() + MOST_SECONDS
    for each in transactions.listed(admin, cluster):
        row: dict[str, Any] = {
            "name": each.transactional_id, "state": each.state, "producer": each.producer_id,
            "coordinator": each.coordinator,
        }  # fmt: skip
        is_enough = described >= MOST_DESCRIBED or time.monotonic() >= until_s
        if each.state in UNDER_WAY and not is_enough:
            described += 1
            row |= _more(admin, each.transactional_id)
        rows.append(row)
    return {"transactions": sorted(rows, key=lambda row: str(row["name"]))}


def _more(admin: Admin, name: str) -> dict[str, Any]:
    """Nothing of one that ended since it was listed."""
    try:
        found = transactions.described(admin, name)
    except ClientFailed:
        return {}
    now_ms = int(1000 * time.time())
    began = found.began_ms if found.began_ms >= 0 else None
    return {
        "state": found.state, "epoch": found.producer_epoch, "timeout_ms": found.timeout_ms,
        "began": began, "late": began is not None and now_ms - began > found.timeout_ms,
        "partitions": [f"{topic}-{index}" for topic, index in found.partitions],
    }  # fmt: skip


def open_in(cluster: Cluster, given: Given) -> dict[str, Any]:
    """Those that keep readers of committed records from what is behind them, by partition."""
    topic, index = given.name("topic"), given.number("partition", high=(1 << 31) - 1)
    admin = Admin(cluster, timeout_s=PATIENCE_SECONDS)
    known = {
        each.producer_id: each.transactional_id
        for each in transactions.listed(admin, cluster)
        if each.state in UNDER_WAY
    }
    rows = [
        {"producer": each.producer_id, "epoch": each.producer_epoch, "begins": each.begins,
         "name": known.get(each.producer_id)}
        for each in transactions.open_in(admin, cluster, topic, index)
    ]  # fmt: skip
    return {"open": sorted(rows, key=lambda row: int(row["begins"]))}


def abort(cluster: Cluster, given: Given) -> dict[str, Any]:
    """One that hangs: its coordinator does not know it any more."""
    topic, index = given.name("topic"), given.number("partition", high=(1 << 31) - 1)
    begins = given.number("begins")
    admin = Admin(cluster, timeout_s=PATIENCE_SECONDS)
    for each in transactions.open_in(admin, cluster, topic, index):
        if each.begins == begins:
            transactions.abort(admin, cluster, topic, index, each)
            return {"aborted": begins}
    raise ClientFailed(f"no open transaction begins at offset {begins} of {topic}-{index}")
