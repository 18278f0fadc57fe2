"""What brokers of Apache Kafka's releases serve, as profiles.txt has it.

Owns how that text is read and which releases there are. Nothing of it is written by hand:
`python -m tests.profiles` asks the classes of each release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

PREFIX = "kafka-"
API_VERSIONS_KEY = 18
NAMES_OWN_VERSIONS = 3  # from this version of ApiVersions on (KIP-511)
GONE = "-"

_ITEM = re.compile(r"(\S+) (\d+)(?:/(\d+))?-(\d+)")


@dataclass(slots=True, frozen=True)
class Profile:
    """What the broker of one release serves."""

    release: str
    listed: dict[int, range]  # by API key, as ApiVersions lists it
    answered: dict[int, range]  # what is asked in another version ends the connection
    features: dict[str, range]  # levels; brokers with a ZooKeeper have none

    @property
    def names_own_versions(self) -> bool:
        """Whether who asks in a version of ApiVersions that it does not know is told those that
        it does."""
        return NAMES_OWN_VERSIONS in self.listed[API_VERSIONS_KEY]


def named(name: str) -> Profile:
    """A profile by its name, as people write it: kafka-2.8."""
    if not isinstance(name, str):
        raise TypeError(f"profile={name!r}: expected a name such as {PREFIX}2.8")
    known = profiles()
    release = name.removeprefix(PREFIX) if name.startswith(PREFIX) else ""
    if release not in known:
        there = ", ".join(f"{PREFIX}{each}" for each in known)
        raise ValueError(f"profile={name!r}: expected one of {there}")
    return known[release]


@cache
def profiles() -> dict[str, Profile]:
    """All of them by their releases, the oldest first."""
    return parsed(files(__package__).joinpath("profiles.txt").read_text(encoding="utf-8"))


def parsed(text: str) -> dict[str, Profile]:
    """A release begins with what the one before it has."""
    found: dict[str, Profile] = {}
    last = Profile("", {}, {}, {})
    bare = "".join(line for line in text.splitlines(True) if not line.startswith("#"))
    for section in bare.split("[")[1:]:
        release, _, items = section.partition("]")
        last = found[release] = _changed(replace(last, release=release), items)
    return found


def _changed(profile: Profile, items: str) -> Profile:
    listed, answered = dict(profile.listed), dict(profile.answered)
    features = dict(profile.features)
    for item in " ".join(items.split()).split(", "):
        name, _, what = item.partition(" ")
        if name[0].islower():
            _, features[name] = _ranges(item)
        elif what == GONE:
            del listed[keys()[name]], answered[keys()[name]]
        else:
            listed[keys()[name]], answered[keys()[name]] = _ranges(item)
    return Profile(profile.release, listed, answered, features)


def _ranges(item: str) -> tuple[range, range]:
    """Of 0/3-12 what is listed and what is answered; mostly both are the same."""
    match = _ITEM.fullmatch(item)
    assert match is not None, item
    _, lowest, answered, highest = match.groups()
    stop = int(highest) + 1
    return range(int(lowest), stop), range(int(answered or lowest), stop)


@cache
def keys() -> dict[str, int]:
    """The keys of all APIs by their names, without reading what they are like."""
    from kafkalite.protocol.files import api_files

    stems = {key: path.stem.partition("_")[2] for key, path in api_files().items()}
    return {stem.title().replace("_", ""): key for key, stem in stems.items()}
