"""The cluster as the page shows it: brokers, their directories, settings, quotas, access rules."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from kafkalite.client import settings
from kafkalite.client.admin import Admin, check
from kafkalite.client.cluster import ClientFailed, Cluster
from kafkalite.client.settings import Kind
from kafkalite.client.survey import survey
from kafkalite.console.given import Given, Mistake
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeLogDirsRequest,
)
from kafkalite.tools import acl_rules

PATIENCE_SECONDS = 5.0
KINDS = ("topic", "broker", "group", "client-metrics")
_ANY = 1
_DESCRIBE = 1 << acl_rules.Operation.DESCRIBE


def brokers(cluster: Cluster, given: Given) -> dict[str, Any]:
    found = survey(cluster, with_groups=False, with_offsets=False, with_settings=False)
    rows: dict[int, dict[str, Any]] = {
        each.node_id: {
            "id": each.node_id, "host": each.host, "port": each.port, "rack": each.rack,
            "controller": each.node_id == found.controller, "leads": 0, "replicas": 0,
            "behind": 0, "dirs": [],
        }
        for each in found.brokers
    }  # fmt: skip
    for topic in found.topics.values():
        for partition in topic.partitions.values():
            for node_id in partition.replicas:
                if node_id in rows:
                    row = rows[node_id]
                    row["replicas"] += 1
                    row["leads"] += node_id == partition.leader
                    row["behind"] += node_id not in partition.in_sync
    missing = list(found.missing)
    for node_id, row in rows.items():
        row["dirs"] = _directories(cluster, node_id, missing)
    return {"cluster": found.cluster_id, "topics": len(found.topics),
            "brokers": list(rows.values()), "missing": missing}  # fmt: skip


def _directories(cluster: Cluster, node_id: int, missing: list[str]) -> list[dict[str, Any]]:
    try:
        answer = cluster.ask(node_id, DescribeLogDirsRequest(topics=None))
    except ClientFailed as failure:
        missing.append(f"the log directories of broker {node_id}: {failure}")
        return []
    rows = []
    for each in answer.results:
        code = Error(each.error_code)
        sizes = [one.partition_size for topic in each.topics for one in topic.partitions]
        rows.append({
            "path": each.log_dir, "error": None if code is Error.NONE else code.name,
            "partitions": len(sizes), "bytes": sum(sizes),
            "total": _known(each.total_bytes), "free": _known(each.usable_bytes),
        })  # fmt: skip
    return rows


def _known(size: int) -> int | None:
    return size if size >= 0 else None


# --- settings -------------------------------------------------------------------------------------


def subject(given: Given) -> tuple[Kind, str]:
    """What has settings; a broker without a name is all of them."""
    kind = Kind[given.choice("of", KINDS).upper().replace("-", "_")]
    name = given.text("name", "")
    if kind is Kind.BROKER and name and not (name.isascii() and name.isdecimal()):
        raise Mistake(f"name: {name!r:.60} is no id of a broker")
    return kind, name


def values(cluster: Cluster, given: Given) -> dict[str, Any]:
    kind, name = subject(given)
    found = settings.values(Admin(cluster, timeout_s=PATIENCE_SECONDS), kind, name)
    return {
        "settings": [
            {
                "key": each.key, "value": each.text, "source": each.source,
                "default": each.is_default, "hidden": each.is_hidden, "fixed": each.is_fixed,
                "doc": each.doc, "behind": each.behind,
            }
            for each in found
        ]
    }  # fmt: skip


# --- who may what ---------------------------------------------------------------------------------


def quotas(cluster: Cluster, given: Given) -> dict[str, Any]:
    request = DescribeClientQuotasRequest(components=[], strict=False)
    answer = Admin(cluster, timeout_s=PATIENCE_SECONDS).ask(request)
    check("the quotas cannot be had", answer)
    rows = [
        {
            "of": [[each.entity_type, each.entity_name] for each in entry.entity],
            "values": {each.key: each.value for each in entry.values},
        }
        for entry in answer.entries or ()
    ]
    return {"quotas": sorted(rows, key=str)}


def access(cluster: Cluster, given: Given) -> dict[str, Any]:
    request = DescribeAclsRequest(
        resource_type_filter=_ANY, resource_name_filter=None, pattern_type_filter=_ANY,
        principal_filter=None, host_filter=None, operation=_ANY, permission_type=_ANY,
    )  # fmt: skip
    answer = Admin(cluster, timeout_s=PATIENCE_SECONDS).ask(request)
    if answer.error_code == Error.SECURITY_DISABLED:
        return {"rules": [], "off": True}
    check("the access rules cannot be had", answer)
    rows = [
        {
            "kind": _name(acl_rules.Kind, each.resource_type), "name": each.resource_name,
            "pattern": _name(acl_rules.Pattern, each.pattern_type), "principal": rule.principal,
            "host": rule.host, "operation": _name(acl_rules.Operation, rule.operation),
            "permission": _name(acl_rules.Permission, rule.permission_type),
        }
        for each in answer.resources
        for rule in each.acls
    ]  # fmt: skip
    order = ("kind", "name", "principal", "operation")
    return {"rules": sorted(rows, key=lambda row: [str(row[each]) for each in order]), "off": False}


def _name(kind: type[IntEnum], number: int) -> str:
    try:
        return kind(number).name.lower()
    except ValueError:
        return str(number)


def may_describe(cluster: Cluster) -> bool:
    """Whether who has logged in may look at the cluster itself."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = Admin(cluster, timeout_s=PATIENCE_SECONDS).ask(request)
    return answer.error_code == Error.NONE and bool(
        answer.cluster_authorized_operations & _DESCRIBE
    )


def about(cluster: Cluster, given: Given) -> dict[str, Any]:
    answer = Admin(cluster, timeout_s=PATIENCE_SECONDS).ask(DescribeClusterRequest())
    check("the cluster cannot be asked", answer)
    return {"cluster": answer.cluster_id, "controller": answer.controller_id,
            "brokers": len(answer.brokers)}  # fmt: skip
