"""What `kafka-storage` and `kafka-features` know of releases: the levels of metadata.version by
name, what each has of the other features, and which of them depend on another.

Owns these tables.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.coordinators.cluster.feature_levels import (
    FEATURES,
    METADATA_VERSION,
    OLDEST_LEVEL,
    STABLE_LEVEL,
    Feature,
)
from kafkalite.tools.failures import TerseFailure, illegal_argument
from kafkalite.tools.java_numbers import SHORT, whole

_NAMES = (
    "3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 "
    "3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 "
    "4.2-IV1 4.3-IV0 4.4-IV0"
).split()
NEWEST_LEVEL = OLDEST_LEVEL + len(_NAMES) - 1
LEVELS = range(OLDEST_LEVEL, NEWEST_LEVEL + 1)


def name_of(level: int) -> str:
    """Of a level that there is."""
    return _NAMES[level - OLDEST_LEVEL]


def level_of(release: str, newest: int = STABLE_LEVEL) -> int:
    """The level of a release, which may be named by its first two numbers alone."""
    key = ".".join(release.split(".")[:2])
    for level in range(newest, OLDEST_LEVEL - 1, -1):
        release_of = name_of(level).partition("-")[0] if level <= STABLE_LEVEL else None
        if key in (name_of(level), release_of):
            return level
    names = ", ".join(_NAMES[: newest - OLDEST_LEVEL + 1])
    raise TerseFailure(
        f"Unknown metadata.version '{release}'. Supported metadata.version are: {names}"
    )


def checked_level(level: int) -> int:
    """A level of metadata.version, of those that may be formatted."""
    if level not in LEVELS:
        raise illegal_argument(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from "
            f"{OLDEST_LEVEL} to {NEWEST_LEVEL}."
        )
    if level > STABLE_LEVEL:
        raise TerseFailure(f"{METADATA_VERSION} {name_of(level)} is not yet stable.")
    return level


def print_mapping(release: str | None) -> None:
    level = STABLE_LEVEL if release is None else level_of(release, NEWEST_LEVEL)
    print(f"{METADATA_VERSION}={level} ({release or name_of(level)})")
    for name, feature in FEATURES.items():
        print(f"{name}={feature.begins_with(level)}")


def print_dependencies(words: Iterable[tuple[str, int]], no_level: str) -> None:
    """no_level: what is said of a level that a feature has not."""
    for name, level in words:
        needed = _checked(name, level, no_level).needed(level)
        if needed:
            print(f"{name}={level} requires:\n    {METADATA_VERSION}={needed} ({name_of(needed)})")
        else:
            print(f"{name}={_shown(name, level)} has no dependencies.")


def _checked(name: str, level: int, no_level: str) -> Feature:
    if name == METADATA_VERSION:
        if level not in LEVELS:
            raise TerseFailure(f"Unknown {METADATA_VERSION} {level}")
        return Feature((), ())
    if name not in FEATURES:
        raise TerseFailure(f"Unknown feature: {name}")
    if not 0 <= level <= FEATURES[name].newest:
        raise TerseFailure(no_level.format(name=name, level=level))
    return FEATURES[name]


def _shown(name: str, level: int) -> str:
    return f"{level} ({name_of(level)})" if name == METADATA_VERSION else str(level)


def parsed(word: str) -> tuple[str, int]:
    """The name and the level in `feature=level`."""
    name, sign, text = word.partition("=")
    start = f"Can't parse feature=level string {word}: "
    if not sign:
        raise TerseFailure(f"{start}equals sign not found.")
    level = short(text)
    if level is None:
        raise TerseFailure(f"{start}unable to parse {text.strip()} as a short.")
    return name.strip(), level


def short(text: str) -> int | None:
    try:
        return whole(text.strip(), SHORT)
    except ValueError:
        return None


def checked(name: str, level: int, metadata_version: int) -> None:
    """Raises unless a cluster at this metadata.version can begin with the feature's level."""
    if not 0 <= level <= FEATURES[name].newest:
        raise illegal_argument(f"No feature:{name} with feature level {level}")
    needed = FEATURES[name].needed(level)
    if metadata_version < needed:
        raise illegal_argument(
            f"{name} could not be set to {level} because it depends on {METADATA_VERSION} level "
            f"{needed}"
        )
