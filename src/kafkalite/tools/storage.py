"""`kafka-storage`: a node's log directories before any broker serves them, and the features that
each release has."""

from __future__ import annotations

import os
from typing import Any

from kafkalite.tools.arguments import Action, Argument, Command, Group
from kafkalite.tools.failures import Failure, TerseFailure
from kafkalite.tools.running import tell, tell_uncaught
from kafkalite.tools.subcommands import Parser

_CONFIG = Argument("config", "The Kafka configuration file to use.", "c", is_required=True)
_VOTERS_LEFT_OUT = (
    " When setting this flag, the controller.quorum.voters config {} not be set, and "
    "controller.quorum.bootstrap.servers is set instead."
)
_VOTERS = Group(is_exclusive=True)
_FORMAT = (
    _CONFIG,
    Argument("cluster-id", "The cluster ID to use.", "t", is_required=True),
    Argument(
        "add-scram",
        "A SCRAM_CREDENTIAL to add to the __cluster_metadata log e.g.\n"
        "'SCRAM-SHA-256=[name=alice,password=alice-secret]'\n"
        "'SCRAM-SHA-512=[name=alice,iterations=8192,salt=\"N3E=\",saltedpassword=\"YCE=\"]'",
        "S", action=Action.APPEND,
    ),
    Argument(
        "ignore-formatted",
        "When this option is passed, the format command will skip over already formatted "
        "directories rather than failing.", "g", action=Action.STORE_TRUE,
    ),
    Argument(
        "release-version",
        "The release version to use for the initial feature settings. The minimum is 3.3-IV3; the "
        "default is 4.3-IV0", "r",
    ),
    Argument(
        "feature",
        "The setting to use for a specific feature, in feature=level format. For example: "
        "`kraft.version=1`.", "f", action=Action.APPEND,
    ),
    Argument(
        "standalone",
        "Used to initialize a controller as a single-node dynamic quorum."
        + _VOTERS_LEFT_OUT.format("must"), "s", action=Action.STORE_TRUE, group=_VOTERS,
    ),
    Argument(
        "no-initial-controllers",
        "Used to initialize a server without specifying a dynamic quorum."
        + _VOTERS_LEFT_OUT.format("should"), "N", action=Action.STORE_TRUE, group=_VOTERS,
    ),
    Argument(
        "initial-controllers",
        "Used to initialize a server with the specified dynamic quorum. The argument is a "
        "comma-separated list of id@hostname:port:directory. The same values must be used to "
        "format all nodes. For example:\n0@example.com:8082:JEXY6aqzQY-32P5TStzaFg,\n"
        "1@example.com:8083:MvDxzVmcRsaTz33bUuRU6A,\n2@example.com:8084:07R5amHmR32VDA6jHkGbTA\n"
        "." + _VOTERS_LEFT_OUT.format("must"), "I", group=_VOTERS,
    ),
)  # fmt: skip
COMMANDS = (
    Command("info", "Get information about the Kafka log directories on this node.", (_CONFIG,)),
    Command("format", "Format the Kafka log directories on this node.", _FORMAT),
    Command(
        "version-mapping",
        "Look up the corresponding features for a given metadata version. Using the command with "
        "no --release-version  argument will return the mapping for the latest stable metadata "
        "version",
        (
            Argument(
                "release-version",
                "The release version to use for the corresponding feature mapping. The minimum is "
                "3.3-IV3; the default is 4.3-IV0", "r",
            ),
        ),
    ),
    Command(
        "feature-dependencies",
        "Look up dependencies for a given feature version. If the feature is not known or the "
        "version not yet defined, an error is thrown. Multiple features can be specified.",
        (
            Argument(
                "feature",
                "The features and their versions to look up dependencies for, in feature=version "
                "format. For example: `metadata.version=5`.", "f",
                is_required=True, action=Action.APPEND,
            ),
        ),
    ),
    Command("random-uuid", "Print a random UUID."),
)  # fmt: skip


def main(words: list[str]) -> int:
    found = Parser("kafka-storage", "The Kafka storage tool.", COMMANDS).read(words)
    if isinstance(found, int):
        return found
    command, given = found
    try:
        return _ACTS[command](given)
    except TerseFailure as failure:
        tell(str(failure))
    except Failure as failure:
        tell_uncaught(failure)
    return 1


def _print_uuid(given: dict[str, Any]) -> int:
    from kafkalite.env.randomness import random_uuid, system_random
    from kafkalite.log.names import uuid_text

    print(uuid_text(random_uuid(system_random())))
    return 0


def _format(given: dict[str, Any]) -> int:
    from kafkalite.tools.formatting import format_directories

    format_directories(given)
    return 0


def _print_mapping(given: dict[str, Any]) -> int:
    from kafkalite.tools.release_features import print_mapping

    print_mapping(given.get("release-version"))
    return 0


def _print_dependencies(given: dict[str, Any]) -> int:
    from kafkalite.tools.release_features import print_dependencies

    no_level = "Feature level {level} is not supported for feature {name}"
    print_dependencies(map(_feature, given["feature"]), no_level)
    return 0


def _feature(word: str) -> tuple[str, int]:
    from kafkalite.tools.release_features import short

    name, sign, text = word.partition("=")
    if not sign:
        raise TerseFailure(
            f"Invalid feature format: {word}. Expected format: 'feature=version' "
            "(e.g. 'group.version=1')"
        )
    level = short(text)
    if level is None:
        raise TerseFailure(f"Invalid version format: {text} for feature {name}")
    return name, level


def _info(given: dict[str, Any]) -> int:
    from kafkalite.tools.node_settings import NodeSettings, meta_properties

    found, problems, metadata = [], [], None
    for directory in sorted(NodeSettings(given["config"]).directories):
        if not os.path.isdir(directory):
            why = "is not a directory" if os.path.exists(directory) else "does not exist"
            problems.append(f"{directory} {why}")
            continue
        found.append(directory)
        other = meta_properties(f"{directory}/meta.properties")
        if other is None:
            problems.append(f"{directory} is not formatted.")
            continue
        other = {name: other[name] for name in sorted(other) if name in _TOLD}
        metadata = other if metadata is None else metadata
        if metadata.get("cluster.id") != other.get("cluster.id"):
            problems.append("Mismatched cluster IDs between storage directories.")
    if metadata is not None and metadata["version"] == "0":
        problems.append(
            "The kafka configuration file appears to be for a cluster in KRaft mode, but the "
            "directories are formatted for legacy mode."
        )
    _print_list("Found log director", found, ("y", "ies"))
    if metadata is not None:
        fields = ", ".join(f"{name}={value}" for name, value in metadata.items())
        print(f"Found metadata: {{{fields}}}\n")
    _print_list("Found problem", problems, ("", "s"))
    return 1 if problems else 0


_TOLD = frozenset({"broker.id", "cluster.id", "directory.id", "node.id", "version"})


def _print_list(title: str, lines: list[str], endings: tuple[str, str]) -> None:
    if lines:
        print(f"{title}{endings[len(lines) > 1]}:")
        print("".join(f"  {line}\n" for line in lines))


_ACTS = {
    "feature-dependencies": _print_dependencies,
    "format": _format,
    "info": _info,
    "random-uuid": _print_uuid,
    "version-mapping": _print_mapping,
}
