"""The features that a cluster may have, and with which levels a new one begins.

Owns the table of Apache Kafka 4.3, and what `kafkalite.features` may say. Raises InvalidSetting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafkalite.config import InvalidSetting
from kafkalite.env.dataclasses import dataclass

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
SETTING: Final = "kafkalite.features"
OLDEST_LEVEL: Final = 7
MOST_DIGITS: Final = 5  # of a level
STABLE_LEVEL: Final = 30  # of metadata.version, with which a cluster begins unless told otherwise


@dataclass(frozen=True, slots=True)
class Feature:
    """Level n + 1 of a feature is what a metadata.version from the nth of `since` on begins with;
    `needs` are the levels of metadata.version without which a level cannot be."""

    since: tuple[int, ...]
    needs: tuple[int, ...]

    @property
    def newest(self) -> int:
        return len(self.since)

    def begins_with(self, metadata_version: int) -> int:
        return sum(metadata_version >= each for each in self.since)

    def needed(self, level: int) -> int:
        """The metadata.version that a level needs, if any."""
        return self.needs[level - 1] if 0 < level <= self.newest else 0


# In the order in which they are printed.
FEATURES: Final = {
    KRAFT_VERSION: Feature((21,), (0,)),
    "transaction.version": Feature((24, 24), (0, 0)),
    "group.version": Feature((22,), (0,)),
    "eligible.leader.replicas.version": Feature((26,), (23,)),
    "share.version": Feature((28,), (0,)),
    "streams.version": Feature((29,), (0,)),
}


def first_levels(words: Iterable[str]) -> dict[str, int]:
    """What a new cluster is to begin with, in the order Kafka writes it; `words` are NAME=LEVEL."""
    given = wanted_levels(words)
    metadata_version = given.get(METADATA_VERSION, STABLE_LEVEL)
    levels = {METADATA_VERSION: metadata_version}
    for name in sorted(FEATURES.keys() - {KRAFT_VERSION}):
        level = given.get(name, FEATURES[name].begins_with(metadata_version))
        if metadata_version < FEATURES[name].needed(level):
            raise InvalidSetting(
                f"{SETTING}: {name} could not be set to {level} because it depends on"
                f" {METADATA_VERSION} level {FEATURES[name].needed(level)}"
            )
        if level:
            levels[name] = level
    return levels


def wanted_levels(words: Iterable[str]) -> dict[str, int]:
    """The features that are named, each with its level."""
    return dict(map(_named, words))


def not_as_wanted(words: Iterable[str], levels: Mapping[str, int]) -> list[str]:
    """What of that a cluster has otherwise."""
    return [
        f"{name}={level}"
        for name, level in wanted_levels(words).items()
        if levels.get(name, 0) != level
    ]


def _named(word: str) -> tuple[str, int]:
    name, sign, text = (part.strip() for part in word.partition("="))
    if not sign or not text.isdecimal() or len(text) > MOST_DIGITS:
        raise InvalidSetting(f"{SETTING}: {word} is not NAME=LEVEL")
    if name == KRAFT_VERSION:
        raise InvalidSetting(f"{SETTING}: {name} is set when a directory is formatted")
    if name != METADATA_VERSION and name not in FEATURES:
        names = ", ".join(sorted({METADATA_VERSION, *FEATURES} - {KRAFT_VERSION}))
        raise InvalidSetting(f"{SETTING}: unsupported feature {name}, there are {names}")
    is_metadata = name == METADATA_VERSION
    low, high = (OLDEST_LEVEL, STABLE_LEVEL) if is_metadata else (0, FEATURES[name].newest)
    if not low <= int(text) <= high:
        raise InvalidSetting(f"{SETTING}: {name} has the levels {low} to {high}, not {text}")
    return name, int(text)
