"""`kafka-metadata-quorum`: the voters and observers of the metadata, and voters that come and go.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    ZERO_UUID,
    AddRaftVoterRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
    RemoveRaftVoterRequest,
)
from kafkalite.tools.arguments import Action, Argument, Command, Group
from kafkalite.tools.asking import Asking, ask, connect
from kafkalite.tools.failures import Failure, TerseFailure, execution, refused, wrapped
from kafkalite.tools.new_controller import new_controller
from kafkalite.tools.running import print_table
from kafkalite.tools.subcommands import Parser
from kafkalite.tools.topic_reports import uuid_of, uuid_text

_METADATA = "__cluster_metadata"
_BROKERS, _CONTROLLERS = 1, 2  # kinds of endpoints
_ADDRESSES = "A comma-separated list of host:port pairs to use for establishing the connection to"
_CONNECTION = Group(is_exclusive=True, is_required=True)
_SHARED = (
    Argument("bootstrap-server", f"{_ADDRESSES} the Kafka cluster.", group=_CONNECTION),
    Argument("bootstrap-controller", f"{_ADDRESSES} the Kafka controllers.", group=_CONNECTION),
    Argument(
        "command-config",
        "Property file containing configs to be passed to Admin Client. For add-controller, the "
        "file is used to specify the controller properties as well.",
    ),
)
_DRY_RUN = Argument(
    "dry-run", "True if we should print what would be done, but not do it.",
    action=Action.STORE_TRUE,
)  # fmt: skip
_REPLICATION = Group("Replication")
COMMANDS = (
    Command(
        "describe", "Describe the metadata quorum info",
        (
            Argument(
                "status",
                "A short summary of the quorum status and the other provides detailed information "
                "about the status of replication.", action=Action.STORE_TRUE, group=Group("Status"),
            ),
            Argument(
                "replication", "Detailed information about the status of replication",
                action=Action.STORE_TRUE, group=_REPLICATION,
            ),
            Argument(
                "human-readable", "Human-readable output", action=Action.STORE_TRUE,
                group=_REPLICATION,
            ),
        ),
    ),
    Command(
        "add-controller", "Add a controller to the KRaft controller cluster", (_DRY_RUN,)
    ),
    Command(
        "remove-controller", "Remove a controller from the KRaft controller cluster",
        (
            Argument(
                "controller-id", "The id of the controller to remove.", "i", int, is_required=True
            ),
            Argument(
                "controller-directory-id", "The directory ID of the controller to remove.", "d",
                is_required=True,
            ),
            _DRY_RUN,
        ),
    ),
)  # fmt: skip


def main(words: list[str]) -> int:
    about = "This tool describes kraft metadata quorum status."
    found = Parser("kafka-metadata-quorum", about, COMMANDS, _SHARED).read(words)
    if isinstance(found, int):
        return found
    command, given = found
    act = _ACTS[command]
    return ask(lambda: _connect(given), lambda asking: act(asking, given))


def _connect(given: dict[str, Any]) -> Asking:
    config = given.get("command-config")
    if config is not None and not Path(config).exists():
        raise TerseFailure(f"Properties file {config} does not exists!")
    is_of_controllers = "bootstrap-controller" in given
    where = given["bootstrap-controller" if is_of_controllers else "bootstrap-server"]
    return connect(where, config)


def _describe(asking: Asking, given: dict[str, Any]) -> None:
    if given["status"] and given["replication"]:
        raise TerseFailure(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if given["replication"]:
        _print_replication(asking, is_human=given["human-readable"])
    elif not given["status"]:
        raise TerseFailure(
            "One of --status or --replication must be specified with describe sub-command"
        )
    elif given["human-readable"]:
        raise TerseFailure("The option --human-readable is only supported along with --replication")
    else:
        _print_status(asking, _CONTROLLERS if "bootstrap-controller" in given else _BROKERS)


def _quorum(asking: Asking) -> tuple[Any, Any, Any]:
    """Its partition, its leader, and the answer that has the nodes."""
    topic = DescribeQuorumRequest.Topic(
        topic_name=_METADATA, partitions=[DescribeQuorumRequest.Partition(partition_index=0)]
    )
    with wrapped(execution):
        request = DescribeQuorumRequest(topics=[topic])
        answer = asking.any("describeMetadataQuorum", request)
        _check(answer)
        [[partition]] = [topic.partitions for topic in answer.topics]
        _check(partition)
    [leader] = [
        each for each in partition.current_voters if each.replica_id == partition.leader_id
    ]
    return partition, leader, answer


def _check(answer: Any) -> None:
    if answer.error_code != Error.NONE:
        raise refused(answer.error_code, answer.error_message)


def _print_status(asking: Asking, endpoint_type: int) -> None:
    with wrapped(execution):
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        cluster = asking.any("describeCluster", request)
        _check(cluster)
    quorum, leader, answer = _quorum(asking)
    last = min(quorum.current_voters, key=lambda each: int(each.log_end_offset))
    caught_up = (leader.last_caught_up_timestamp, last.last_caught_up_timestamp)
    lag_ms = 0 if last is leader else caught_up[0] - caught_up[1] if min(caught_up) >= 0 else -1
    for head, value in (
        ("ClusterId", cluster.cluster_id), ("LeaderId", quorum.leader_id),
        ("LeaderEpoch", quorum.leader_epoch), ("HighWatermark", quorum.high_watermark),
        ("MaxFollowerLag", leader.log_end_offset - last.log_end_offset),
        ("MaxFollowerLagTimeMs", lag_ms),
        ("CurrentVoters", _replicas(quorum.current_voters, answer.nodes)),
        ("CurrentObservers", _replicas(quorum.observers, answer.nodes)),
    ):  # fmt: skip
        print(f"{head + ':':24}{value}")


def _replicas(replicas: Iterable[Any], nodes: Iterable[Any]) -> str:
    listeners = {node.node_id: node.listeners for node in nodes}
    shown = []
    for each in replicas:
        parts = [f'"id": {each.replica_id}']
        if each.replica_directory_id != ZERO_UUID:
            parts.append(f'"directoryId": "{uuid_text(each.replica_directory_id)}"')
        endpoints = ", ".join(
            f'"{at.name}://{at.host}:{at.port}"' for at in listeners.get(each.replica_id, [])
        )
        if endpoints:
            parts.append(f'"endpoints": [{endpoints}]')
        shown.append(f"{{{', '.join(parts)}}}")
    return f"[{', '.join(shown)}]"


def _print_replication(asking: Asking, *, is_human: bool) -> None:
    quorum, leader, _ = _quorum(asking)
    followers = [each for each in quorum.current_voters if each is not leader]
    rows = [(
        "NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp",
        "LastCaughtUpTimestamp", "Status",
    )]  # fmt: skip
    for replicas, status in (
        ([leader], "Leader"), (followers, "Follower"), (quorum.observers, "Observer")
    ):  # fmt: skip
        rows += [
            (
                str(each.replica_id), uuid_text(each.replica_directory_id),
                str(each.log_end_offset), str(leader.log_end_offset - each.log_end_offset),
                _moment(each.last_fetch_timestamp, "last fetch", is_human=is_human),
                _moment(each.last_caught_up_timestamp, "last caught up", is_human=is_human),
                status,
            )
            for each in replicas
        ]  # fmt: skip
    print_table(rows)


def _moment(moment_ms: int, what: str, *, is_human: bool) -> str:
    if moment_ms < 0 or not is_human:
        return str(moment_ms)
    now_ms = int(1000 * time.time())
    if not 0 < moment_ms <= now_ms:
        message = (
            "Error while computing relative time, possible drift in system clock.\nCurrent "
            f"timestamp is {now_ms}, {what} timestamp is {moment_ms}"
        )
        raise Failure("org.apache.kafka.common.KafkaException", message)
    return f"{now_ms - moment_ms} ms ago"


def _add(asking: Asking, given: dict[str, Any]) -> None:
    if "command-config" not in given:
        raise TerseFailure(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    new = new_controller(given["command-config"])
    if not given["dry-run"]:
        listeners = [
            AddRaftVoterRequest.Listener(name=name, host=host, port=port)
            for name, (host, port) in new.endpoints.items()
        ]
        request = AddRaftVoterRequest(
            cluster_id=None, timeout_ms=int(1000 * asking.timeout_s), voter_id=new.node_id,
            voter_directory_id=new.directory_id, listeners=listeners,
        )  # fmt: skip
        with wrapped(execution):
            _check(asking.any("addRaftVoter", request))
    print(f"{'DRY RUN of adding' if given['dry-run'] else 'Added'} {new}")


def _remove(asking: Asking, given: dict[str, Any]) -> None:
    number = given["controller-id"]
    if number < 0:
        raise TerseFailure(f"Invalid negative --controller-id: {number}")
    try:
        directory = uuid_of(given["controller-directory-id"])
    except Failure as failure:
        why = f"Failed to parse --controller-directory-id: {failure.message}"
        raise TerseFailure(why) from None
    if not given["dry-run"]:
        request = RemoveRaftVoterRequest(
            cluster_id=None, voter_id=number, voter_directory_id=directory
        )
        with wrapped(execution):
            _check(asking.any("removeRaftVoter", request))
    done = "DRY RUN of removing " if given["dry-run"] else "Removed "
    print(f"{done} KRaft controller {number} with directory id {uuid_text(directory)}")


_ACTS = {"describe": _describe, "add-controller": _add, "remove-controller": _remove}
