"""The features of the cluster: what this broker can do, and decisions on their levels.

Owns the ranges that are registered and advertised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkalite.coordinators.cluster.feature_levels import (
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    OLDEST_LEVEL,
    STABLE_LEVEL,
)
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.records import UnknownMetadata
from kafkalite.coordinators.cluster.view import View, decided
from kafkalite.coordinators.effects import Effects
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    FeatureLevelRecord,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

# The oldest and the newest level of each.
SUPPORTED: Final[dict[str, tuple[int, int]]] = {
    METADATA_VERSION: (OLDEST_LEVEL, STABLE_LEVEL),
    **{name: (0, FEATURES[name].newest) for name in sorted(FEATURES)},
}
# Levels of metadata.version that changed a record: nobody goes back past them.
CHANGED_RECORDS: Final = (*range(8, 24), 30)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
STATIC_VOTERS: Final = (
    "The voters of this cluster are static: only a directory that kafka-storage formats with"
    " --standalone or --initial-controllers has them in its log."
)


def check_finalized(image: Image) -> None:
    """Raises UnknownMetadata at a feature or a level whose records would not be understood."""
    check_levels(image.features)


def check_levels(levels: Mapping[str, int]) -> None:
    for name, level in levels.items():
        lowest, highest = SUPPORTED.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise UnknownMetadata(f"the feature {name} at level {level}")


def update_features(view: View, request: UpdateFeaturesRequest) -> Effects:
    """Raises or lowers finalized levels; one bad update refuses them all."""
    wanted = {each.feature: each for each in request.feature_updates}  # what is named last
    proposed = dict(view.image.features)
    proposed.update({name: each.max_version_level for name, each in wanted.items()})
    records = []
    for update in wanted.values():
        kind = update.upgrade_type
        _check(view, update.feature, update.max_version_level, kind, proposed)
        if update.feature != KRAFT_VERSION:
            records.append(
                FeatureLevelRecord(name=update.feature, feature_level=update.max_version_level)
            )
    response = UpdateFeaturesResponse(error_code=Error.NONE, error_message=None)
    response.results = [
        UpdateFeaturesResponse.Result(
            feature=each.feature, error_code=Error.NONE, error_message="NONE"
        )
        for each in request.feature_updates
    ]
    return decided(view, [] if request.validate_only else records, response)


def _check(view: View, name: str, level: int, kind: int, proposed: dict[str, int]) -> None:
    current = view.image.features.get(name, 0) if name != KRAFT_VERSION else view.kraft_version
    why = None
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        why = "The controller does not support the given upgrade type."
    elif level < 0:
        why = "A feature version cannot be less than 0."
    elif name not in SUPPORTED and level == 0:
        why = f"Feature {name} not found."
    elif name not in SUPPORTED:
        why = f"Local controller {view.config.node_id} does not support this feature."
    elif not SUPPORTED[name][0] <= level <= SUPPORTED[name][1]:
        low, high = SUPPORTED[name]
        why = f"Local controller {view.config.node_id} only supports versions {low}-{high}"
    elif level < current and kind == UPGRADE:
        why = (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    elif level > current and kind != UPGRADE:
        why = "Can't downgrade to a newer version."
    elif name == KRAFT_VERSION and level != current:
        why = STATIC_VOTERS if level > current else "Can't downgrade the version of this feature."
    elif name in FEATURES and proposed.get(METADATA_VERSION, 0) < FEATURES[name].needed(level):
        why = (
            f"{name} could not be set to {level} because it depends on "
            f"metadata.version level {FEATURES[name].needed(level)}"
        )
    if why is not None:
        raise _refused(f"Invalid update version {level} for feature {name}. {why}")
    if name == METADATA_VERSION and any(level < each <= current for each in CHANGED_RECORDS):
        why = (
            "Unsafe metadata downgrade is not supported in this version."
            if kind == UNSAFE_DOWNGRADE
            else "Refusing to perform the requested downgrade because it might delete metadata "
            "information."
        )
        start = f"Unsupported metadata.version downgrade from {current} to {level}."
        raise _refused(f"{start} {why}")


def _refused(why: str) -> KafkaError:
    start = "The update failed for all features since the following feature had an error"
    return KafkaError(Error.INVALID_UPDATE_VERSION, f"{start}: {why}")
