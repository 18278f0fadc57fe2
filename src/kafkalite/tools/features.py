"""`kafka-features`: the cluster's finalized features, and what Apache Kafka 4.3 knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkalite.coordinators.cluster.feature_levels import (
    FEATURES,
    METADATA_VERSION,
    OLDEST_LEVEL,
    STABLE_LEVEL,
)
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ApiVersionsRequest, UpdateFeaturesRequest
from kafkalite.tools.arguments import Action, Argument, Command, Group
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, TerseFailure, execution, refused, wrapped
from kafkalite.tools.options import VERSION
from kafkalite.tools.release_features import (
    LEVELS,
    NEWEST_LEVEL,
    level_of,
    name_of,
    parsed,
    print_dependencies,
    print_mapping,
)
from kafkalite.tools.running import tell
from kafkalite.tools.subcommands import Parser, tell_terse

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_NO_LEVEL = "No feature:{name} with feature level {level}"
_ADDRESSES = "A comma-separated list of host:port pairs to use for establishing the connection to"
_CONNECTION = Group(is_exclusive=True)
_SHARED = (
    Argument(
        "bootstrap-server", f"{_ADDRESSES} the Kafka cluster.", group=_CONNECTION
    ),
    Argument(
        "bootstrap-controller", f"{_ADDRESSES} the KRaft quorum.", group=_CONNECTION,
    ),
    Argument(
        "command-config", "Property file containing configs to be passed to Admin Client."
    ),
)  # fmt: skip


def _changing(verb: str, example: str) -> tuple[Argument, ...]:
    return (
        Argument(
            "metadata",
            f"DEPRECATED -- The level to which we should {verb} the metadata. For example, "
            f"{example}.",
        ),
        Argument(
            "release-version",
            f"The release version to {'update' if verb == 'upgrade' else verb} all features to. "
            "For example, 3.9-IV0 will set metadata.version=21 and kraft.version=1. Use the "
            "version-mapping command to learn which features will be set for any given version.",
        ),
        Argument(
            "feature",
            f"A feature {verb} we should perform, in feature=level format. For example: "
            "`metadata.version=5`.", action=Action.APPEND,
        ),
        *(() if verb == "upgrade" else (_unsafe("Perform this downgrade"),)),
        _dry_run(f"Validate this {verb}, but do not perform it."),
    )  # fmt: skip


def _dry_run(text: str) -> Argument:
    return Argument("dry-run", text, action=Action.STORE_TRUE)


def _unsafe(what: str) -> Argument:
    text = f"{what} even if it may irreversibly destroy metadata."
    return Argument("unsafe", text, action=Action.STORE_TRUE)


COMMANDS = (
    Command(
        "describe", "Describes the current active feature flags.",
        (
            Argument(
                "node-id",
                "The node id to which the requests should be sent. If not specified, the requests "
                "will be sent to an arbitrary controller/broker.", "", int,
            ),
        ),
    ),
    Command("upgrade", "Upgrade one or more feature flags.", _changing("upgrade", "3.3-IV3")),
    Command(
        "downgrade", "Downgrade one or more feature flags.", _changing("downgrade", "3.3-IV0")
    ),
    Command(
        "disable",
        "Disable one or more feature flags. This is the same as downgrading the version to zero.",
        (
            Argument("feature", "A feature flag to disable.", action=Action.APPEND),
            _unsafe("Disable this feature flag"),
            _dry_run("Perform a dry-run of this disable operation."),
        ),
    ),
    Command(
        "version-mapping",
        "Look up the corresponding features for a given metadata version. Using the command with "
        "no --release-version argument will return the mapping for the latest stable metadata "
        "version",
        (
            Argument(
                "release-version",
                "The release version to use for the corresponding feature mapping. The minimum is "
                f"{name_of(OLDEST_LEVEL)}; the default is {name_of(STABLE_LEVEL)}",
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
                "The feature and version to look up dependencies for, in feature=version format. "
                "For example: `metadata.version=5`.", is_required=True, action=Action.APPEND,
            ),
        ),
    ),
)  # fmt: skip


def main(words: list[str]) -> int:
    about = "This tool manages feature flags in Kafka."
    found = Parser("kafka-features", about, COMMANDS, _SHARED, is_terse=True).read(words)
    if isinstance(found, int):
        return found
    command, given = found
    try:
        if command == "version-mapping":
            print_mapping(given.get("release-version"))
            return 0
        if command == "feature-dependencies":
            print_dependencies(map(parsed, given["feature"]), _NO_LEVEL)
            return 0
        where = given.get("bootstrap-server", given.get("bootstrap-controller"))
        config = given.get("command-config")
        if config is not None and not Path(config).exists():
            raise TerseFailure(config)
        if where is None:
            tell_terse("You must specify either --bootstrap-controller or --bootstrap-server.")
            return 1
        asking = connect(where, config)
        try:
            if command == "describe":
                _describe(asking, given.get("node-id"))
            else:
                _update(asking, command, given)
        finally:
            asking.close()
    except (Failure, TerseFailure) as failure:
        tell(str(failure))
        return 1
    return 0


def _describe(asking: Asking, node_id: int | None) -> None:
    request = ApiVersionsRequest(
        client_software_name="kafkalite", client_software_version=VERSION
    )
    with wrapped(execution):
        answer: Any = (
            asking.any("describeFeatures", request)
            if node_id is None
            else asking.broker("describeFeatures", node_id, request)
        )
        if answer.error_code != Error.NONE:
            raise refused(answer.error_code)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    for each in sorted(answer.supported_features, key=lambda each: str(each.name)):
        cells = {
            "SupportedMinVersion": each.min_version, "SupportedMaxVersion": each.max_version,
            "FinalizedVersionLevel": levels.get(each.name, 0),
        }  # fmt: skip
        shown = "".join(
            f"{head}: {_shown(each.name, level):17}" for head, level in cells.items()
        )
        print(f"Feature: {each.name:42}{shown}Epoch: {'-' if epoch < 0 else epoch}")


def _shown(feature: str, level: int) -> str:
    if feature != METADATA_VERSION:
        return str(level)
    return name_of(level) if level in LEVELS else f"UNKNOWN [{level}]"


def _update(asking: Asking, command: str, given: dict[str, Any]) -> None:
    levels = _wanted(command, given)
    if not levels:
        raise TerseFailure(f"You must specify at least one feature to {command}")
    if "" in levels:
        raise TerseFailure("Provided feature can not be empty.")
    kind = _UPGRADE if command == "upgrade" else _SAFE_DOWNGRADE
    updates = [
        UpdateFeaturesRequest.FeatureUpdate(
            feature=feature, max_version_level=level,
            upgrade_type=_UNSAFE_DOWNGRADE if given.get("unsafe") else kind,
        )
        for feature, level in sorted(levels.items())
    ]  # fmt: skip
    request = UpdateFeaturesRequest(feature_updates=updates, validate_only=given["dry-run"])
    failure = _failure(asking, request, is_of_controllers="bootstrap-controller" in given)
    for feature in sorted(levels):
        to = feature if command == "disable" else f"{feature} to {levels[feature]}"
        done = "disabled" if command == "disable" else f"{command}d to {levels[feature]}"
        if failure is not None:
            could = "Can not" if given["dry-run"] else "Could not"
            print(f"{could} {command} {to}. {failure.message}")
        else:
            print(f"{feature} {'can be' if given['dry-run'] else 'was'} {done}.")
    if failure is not None:
        raise TerseFailure(f"{len(levels)} out of {len(levels)} operation(s) failed.")


def _failure(asking: Asking, request: Any, *, is_of_controllers: bool) -> Failure | None:
    """Why none of the updates is made; all are, or none."""
    try:
        if is_of_controllers:
            answer = asking.any("updateFeatures", request)
        else:
            answer = asking.controller(
                "updateFeatures", request, lambda answer: [answer.error_code]
            )
    except Failure as failure:
        return failure
    if answer.error_code == Error.NONE:
        return None
    return refused(answer.error_code, answer.error_message)


def _wanted(command: str, given: dict[str, Any]) -> dict[str, int]:
    texts, metadata = given.get("feature", []), given.get("metadata")
    release = given.get("release-version")
    found: dict[str, int] = {}
    if release is not None:
        if texts or metadata is not None:
            raise TerseFailure("Can not specify `release-version` with other feature flags.")
        level = level_of(release, NEWEST_LEVEL)
        begins = {name: each.begins_with(level) for name, each in FEATURES.items()}
        levels = {METADATA_VERSION: level, **begins}
        return {name: levels[name] for name in levels if levels[name] or command != "upgrade"}
    if metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        found[METADATA_VERSION] = level_of(metadata, NEWEST_LEVEL)
    for text in texts:
        feature, level = (text, 0) if command == "disable" else parsed(text)
        if feature in found:
            raise TerseFailure(f"Feature {feature} was specified more than once.")
        found[feature] = level
    return found
