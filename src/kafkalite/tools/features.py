"""`kafka-features`: the cluster's finalized features, and what Apache Kafka 4.3 knows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ApiVersionsRequest, UpdateFeaturesRequest
from kafkalite.tools.asking import Asking, connect
from kafkalite.tools.failures import Failure, execution, refused, wrapped
from kafkalite.tools.java_numbers import SHORT, whole
from kafkalite.tools.options import VERSION
from kafkalite.tools.running import tell
from kafkalite.tools.subcommands import Argument, Command, Parser, tell_terse

METADATA = "metadata.version"
# Of Apache Kafka 4.3, the first at level 7; the last is not for use yet.
_VERSIONS = """3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1
3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0
4.2-IV1 4.3-IV0 4.4-IV0""".split()
_FIRST_LEVEL = 7
_LATEST = "4.3-IV0"
# Each feature's levels above 0, and the metadata.version from which on it is the default.
_DEFAULTS: dict[str, dict[int, int | None]] = {
    "kraft.version": {1: 21}, "transaction.version": {1: None, 2: 24}, "group.version": {1: 22},
    "eligible.leader.replicas.version": {1: 26}, "share.version": {1: 28},
    "streams.version": {1: 29},
}  # fmt: skip
_NEEDS = {("eligible.leader.replicas.version", 1): (METADATA, 23)}
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_ADDRESSES = "A comma-separated list of host:port pairs to use for establishing the connection to"
_SHARED = (
    Argument(
        "bootstrap-server", f"{_ADDRESSES} the Kafka cluster.", one_of="connection", is_free=True
    ),
    Argument(
        "bootstrap-controller", f"{_ADDRESSES} the KRaft quorum.", one_of="connection",
        is_free=True,
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
            "`metadata.version=5`.", is_list=True,
        ),
        *(() if verb == "upgrade" else (_unsafe("Perform this downgrade"),)),
        Argument("dry-run", f"Validate this {verb}, but do not perform it.", is_flag=True),
    )  # fmt: skip


def _unsafe(what: str) -> Argument:
    text = f"{what} even if it may irreversibly destroy metadata."
    return Argument("unsafe", text, is_flag=True)


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
            Argument("feature", "A feature flag to disable.", is_list=True),
            _unsafe("Disable this feature flag"),
            Argument("dry-run", "Perform a dry-run of this disable operation.", is_flag=True),
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
                f"{_VERSIONS[0]}; the default is {_LATEST}",
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
                "For example: `metadata.version=5`.", is_required=True, is_list=True,
            ),
        ),
    ),
)  # fmt: skip


class Wrong(Exception):
    """What is said, and nothing more."""


def main(words: list[str]) -> int:
    about = "This tool manages feature flags in Kafka."
    found = Parser("kafka-features", about, COMMANDS, _SHARED, is_terse=True).read(words)
    if found is None:
        return 0 if {"-h", "--help"} & set(words) else 1
    command, given = found
    try:
        if command == "version-mapping":
            _print_mapping(given.get("release-version", _LATEST))
            return 0
        if command == "feature-dependencies":
            _print_dependencies(given["feature"])
            return 0
        where = given.get("bootstrap-server", given.get("bootstrap-controller"))
        config = given.get("command-config")
        if config is not None and not Path(config).exists():
            raise Wrong(config)
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
    except (Failure, Wrong) as failure:
        tell(str(failure))
        return 1
    return 0


def _level(text: str) -> int:
    """Of a metadata.version: its name, or that of a release."""
    major, _, rest = text.partition(".")
    release = f"{major}.{rest.partition('.')[0]}-"
    of_release = [name for name in _VERSIONS[:-1] if name.startswith(release)]
    if text in _VERSIONS or not of_release:
        of_release = [text]
    if of_release[-1] not in _VERSIONS:
        raise Wrong(
            f"Unknown metadata.version '{text}'. Supported metadata.version are: "
            f"{', '.join(_VERSIONS)}"
        )
    return _FIRST_LEVEL + _VERSIONS.index(of_release[-1])


def _name(level: int) -> str | None:
    place = level - _FIRST_LEVEL
    return _VERSIONS[place] if 0 <= place < len(_VERSIONS) else None


def _defaults(metadata: int) -> dict[str, int]:
    """The levels of the other features that come with a metadata.version."""
    return {
        feature: max((level for level, since in levels.items() if since and metadata >= since),
                     default=0)
        for feature, levels in _DEFAULTS.items()
    }  # fmt: skip


def _print_mapping(text: str) -> None:
    level = _level(text)
    print(f"{METADATA}={level} ({text})")
    for feature, default in _defaults(level).items():
        print(f"{feature}={default}")


def _print_dependencies(texts: list[str]) -> None:
    for text in texts:
        feature, level = _parsed(text)
        needed = _NEEDS.get((feature, level))
        shown = f"{feature}={_checked(feature, level)}"
        print(f"{shown} requires:" if needed else f"{shown} has no dependencies.")
        if needed:
            print(f"    {needed[0]}={_checked(*needed)}")


def _checked(feature: str, level: int) -> str:
    if feature == METADATA:
        if (name := _name(level)) is None:
            raise Wrong(f"Unknown metadata.version {level}")
        return f"{level} ({name})"
    if feature not in _DEFAULTS:
        raise Wrong(f"Unknown feature: {feature}")
    if level not in (0, *_DEFAULTS[feature]):
        raise Wrong(f"No feature:{feature} with feature level {level}")
    return str(level)


def _parsed(text: str) -> tuple[str, int]:
    name, mark, level = text.partition("=")
    if not mark:
        raise Wrong(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return name.strip(), whole(level.strip(), SHORT)
    except ValueError:
        pass
    raise Wrong(
        f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
    )


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
    return str(level) if feature != METADATA else _name(level) or f"UNKNOWN [{level}]"


def _update(asking: Asking, command: str, given: dict[str, Any]) -> None:
    levels = _wanted(command, given)
    if not levels:
        raise Wrong(f"You must specify at least one feature to {command}")
    if "" in levels:
        raise Wrong("Provided feature can not be empty.")
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
        raise Wrong(f"{len(levels)} out of {len(levels)} operation(s) failed.")


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
            raise Wrong("Can not specify `release-version` with other feature flags.")
        level = _level(release)
        levels = {METADATA: level, **_defaults(level)}
        return {name: levels[name] for name in levels if levels[name] or command != "upgrade"}
    if metadata is not None:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        found[METADATA] = _level(metadata)
    for text in texts:
        feature, level = (text, 0) if command == "disable" else _parsed(text)
        if feature in found:
            raise Wrong(f"Feature {feature} was specified more than once.")
        found[feature] = level
    return found
