"""`kafka-storage format`: what a new cluster begins with, written into a node's log directories.

Owns the order of its checks, and of its writes: `meta.properties` comes last, so a directory that
has one is whole.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from kafkalite.coordinators.cluster.feature_levels import (
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    STABLE_LEVEL,
)
from kafkalite.coordinators.cluster.snapshots import SnapshotId, SnapshotWriter
from kafkalite.env.disk import RealDisk
from kafkalite.env.randomness import random_uuid, system_random
from kafkalite.env.slicing import finish
from kafkalite.log.checkpoints import write_properties
from kafkalite.log.names import META_PROPERTIES, METADATA_DIRECTORY, uuid_text
from kafkalite.protocol.messages import FeatureLevelRecord, UserScramCredentialRecord
from kafkalite.tools.dynamic_voters import Voter, parse_voters, quorum_records
from kafkalite.tools.failures import Failure, TerseFailure
from kafkalite.tools.java_maps import in_copied_order, in_map_order
from kafkalite.tools.node_settings import NodeSettings, meta_properties
from kafkalite.tools.release_features import checked, checked_level, level_of, name_of, parsed
from kafkalite.tools.scram_words import SCRAM_LEVEL, credentials, shown

_RUNTIME = "java.lang.RuntimeException"
_BOOTSTRAP = "bootstrap.checkpoint"
_DYNAMIC_INSTEAD = (
    "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
    "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and "
    "specify controller.quorum.bootstrap.servers instead."
)
_NO_VOTERS = (
    "Because controller.quorum.voters is not set on this controller, you must specify one of the "
    "following: --standalone, --initial-controllers, or --no-initial-controllers."
)
_FLAGS = (
    "controller.quorum.voters is empty and one of the flags --standalone, --initial-controllers, "
    "or --no-initial-controllers is used. For dynamic controllers support, try "
)

Message = FeatureLevelRecord | UserScramCredentialRecord


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written wherever nothing is yet."""

    settings: NodeSettings
    cluster_id: str
    level: int
    kraft_version: int
    messages: list[Message]
    voters: dict[int, Voter]


def format_directories(given: dict[str, Any]) -> None:
    plan = _plan(NodeSettings(given["config"]), given)
    formatted, failed = _formatted(plan)
    if formatted and not given["ignore-formatted"]:
        raise TerseFailure(
            f"Log directory {in_copied_order(formatted)[0]} is already formatted. Use "
            "--ignore-formatted to ignore this directory and format the others."
        )
    for directory in failed:
        print(f"I/O error trying to read log directory {directory}. Ignoring...")
    done = {*formatted, *failed}
    empty = [each for each in plan.settings.directories if each not in done]
    if not empty:
        if not formatted:
            raise TerseFailure("No available log directories to format.")
        print("All of the log directories are already formatted.")
        return
    print(f"Bootstrap metadata: {_told(plan)}")
    for directory in in_map_order(empty):
        _format(plan, directory)


def _plan(settings: NodeSettings, given: dict[str, Any]) -> Plan:
    release = given.get("release-version")
    level = None if release is None else level_of(release)
    features = dict(_feature(word) for word in given.get("feature", []))
    voters = _voters(settings, given)
    if METADATA_VERSION in features:
        if level is not None:
            raise TerseFailure(
                "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
            )
        level = checked_level(features.pop(METADATA_VERSION))
    level = STABLE_LEVEL if level is None else level
    features = _levels(features, level, is_dynamic=not settings.has_static_voters)
    kraft_version = features.pop(KRAFT_VERSION)
    messages: list[Message] = [
        FeatureLevelRecord(name=name, feature_level=each)
        for name, each in [(METADATA_VERSION, level), *sorted(features.items())]
        if each
    ]
    users = given.get("add-scram", [])
    if users and level < SCRAM_LEVEL:
        raise TerseFailure(
            f"SCRAM is only supported in metadata.version {name_of(SCRAM_LEVEL)} or later."
        )
    messages += credentials(users)
    return Plan(settings, given["cluster-id"], level, kraft_version, messages, voters)


def _feature(word: str) -> tuple[str, int]:
    try:
        return parsed(word)
    except TerseFailure as wrong:
        raise Failure(_RUNTIME, str(wrong)) from None


def _voters(settings: NodeSettings, given: dict[str, Any]) -> dict[int, Voter]:
    initial, is_standalone = given.get("initial-controllers"), given["standalone"]
    if settings.has_static_voters and (initial is not None or is_standalone):
        raise TerseFailure(_DYNAMIC_INSTEAD)
    voters = {} if initial is None else parse_voters(initial)
    if is_standalone:
        if not settings.is_controller:
            raise TerseFailure("You can only use --standalone on a controller.")
        host, port = settings.controller_address()
        voters = {settings.node_id: Voter(random_uuid(system_random()), host, port)}
    is_left_open = settings.is_controller and not given["no-initial-controllers"] and not voters
    if is_left_open and not settings.has_static_voters:
        raise TerseFailure(_NO_VOTERS)
    return voters


def _levels(given: dict[str, int], level: int, *, is_dynamic: bool) -> dict[str, int]:
    """Of all features: what is given, else what the release begins with."""
    for name in given:
        if name not in FEATURES:
            names = ", ".join(sorted(FEATURES))
            raise TerseFailure(f"Unsupported feature: {name}. Supported features are: {names}")
    if KRAFT_VERSION in given:
        kraft_version = given[KRAFT_VERSION]
        if is_dynamic and kraft_version == 0:
            raise TerseFailure(
                f"Cannot set kraft.version to 0 if {_FLAGS}removing the --feature flag for "
                "kraft.version."
            )
        if kraft_version and not is_dynamic:
            raise TerseFailure(
                f"Cannot set kraft.version to {kraft_version} unless {_FLAGS}using one of "
                "--standalone, --initial-controllers, or --no-initial-controllers and removing "
                "controller.quorum.voters."
            )
    begins = {name: each.begins_with(level) for name, each in FEATURES.items()}
    found = {**begins, KRAFT_VERSION: int(is_dynamic), **given}
    for name in sorted(found):
        checked(name, found[name], level)
    return found


def _formatted(plan: Plan) -> tuple[list[str], list[str]]:
    """The directories that are formatted already, and those that cannot be read."""
    formatted, failed = [], []
    for directory in plan.settings.directories:
        path = f"{directory}/{META_PROPERTIES}"
        try:
            found = meta_properties(path)
        except Failure:
            failed.append(directory)
            continue
        if found is None:
            continue
        formatted.append(directory)
        wanted = {"cluster.id": plan.cluster_id, "node.id": str(plan.settings.node_id)}
        for name, value in wanted.items():
            if found.get(name, value) != value:
                raise Failure(
                    _RUNTIME,
                    f"Invalid {name} in: {path}. Expected {value}, but read {found[name]}"
                )
    return formatted, failed


def _format(plan: Plan, directory: str) -> None:
    disk = RealDisk()
    is_metadata = directory == plan.settings.metadata_directory
    own = plan.voters.get(plan.settings.node_id) if is_metadata else None
    kind = "metadata" if is_metadata else "data"
    is_dynamic = is_metadata and bool(plan.voters)
    if is_dynamic:
        kind = "dynamic metadata" if own is None else "dynamic metadata voter"
    print(f"Formatting {kind} directory {directory} with metadata.version {name_of(plan.level)}.")
    try:
        disk.make_directory(directory)
        _write_snapshot(plan, directory, [], plan.messages)
        disk.rename(f"{directory}/{_FIRST.file_name}", f"{directory}/{_BOOTSTRAP}")
        if is_dynamic:
            path = f"{directory}/{METADATA_DIRECTORY}"
            disk.make_directory(path)
            records = quorum_records(
                plan.voters, plan.kraft_version, plan.settings.controller_listener
            )
            _write_snapshot(plan, path, records, [])
        directory_id = random_uuid(system_random()) if own is None else own.directory_id
        write_properties(disk, f"{directory}/{META_PROPERTIES}", {
            "version": "1",
            "cluster.id": plan.cluster_id,
            "node.id": str(plan.settings.node_id),
            "directory.id": uuid_text(directory_id),
        })  # fmt: skip
    except OSError as error:
        raise TerseFailure(
            f"Error while writing meta.properties file {directory}: {error.strerror}"
        ) from error


_FIRST = SnapshotId(0, 0)


def _write_snapshot(plan: Plan, directory: str, quorum: list[Any], messages: list[Message]) -> None:
    writer = SnapshotWriter(RealDisk(), directory, plan.level, time.time_ns() // 1_000_000)
    finish(writer.write(_FIRST, quorum, messages))()


def _told(plan: Plan) -> str:
    records = ", ".join(
        f"ApiMessageAndVersion({_shown(each)} at version 0)" for each in plan.messages
    )
    return (
        f"BootstrapMetadata(records=[{records}], metadataVersionLevel={plan.level}, "
        "source=format command)"
    )


def _shown(message: Message) -> str:
    if isinstance(message, FeatureLevelRecord):
        return f"FeatureLevelRecord(name='{message.name}', featureLevel={message.feature_level})"
    return shown(message)
