"""Profiles: how clusters are reached, kept under names in files of their owner's.

Owns where they are and which one is in use. A profile is a file of client properties, which Apache
Kafka's tools take as it is, with `kafkalite.output` in it where somebody wants another than tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from kafkalite.cli._private_file import write_private

# In the environment: the folder, and which profile is in use in place of the one that was chosen.
FOLDER, IN_USE = "KAFKALITE_PROFILES", "KAFKALITE_PROFILE"
OUTPUT = "kafkalite.output"
_ENDING = ".properties"
_CHOSEN = "in-use"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(slots=True)
class Profiles:
    folder: Path

    def names(self) -> list[str]:
        found = (path.name.removesuffix(_ENDING) for path in self.folder.glob(f"*{_ENDING}"))
        return sorted(name for name in found if _NAME.fullmatch(name))

    def in_use(self) -> str | None:
        """By the environment, else as it was chosen."""
        return os.environ.get(IN_USE) or self._chosen()

    def _chosen(self) -> str | None:
        try:
            return (self.folder / _CHOSEN).read_text("utf-8", "replace").strip() or None
        except OSError:
            return None

    def load(self, name: str) -> dict[str, str]:
        """ClickException when there is none of that name."""
        from kafkalite.cli._properties_file import PropertiesFile

        path = self._path(name)
        if not path.exists():
            known = ", ".join(self.names()) or "none yet"
            raise click.ClickException(
                f"there is no profile {name}, but {known}: `kafkalite profile set {name} -b "
                "HOST:PORT` makes one"
            )
        return PropertiesFile().convert(str(path), None, None)

    def save(self, name: str, values: Mapping[str, str]) -> None:
        from kafkalite.config.properties import as_properties

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path(name), as_properties(values))

    def has(self, name: str) -> bool:
        return self._path(name).exists()

    def use(self, name: str) -> None:
        self.load(name)
        write_private(self.folder / _CHOSEN, f"{name}\n")

    def delete(self, name: str) -> None:
        self.load(name)
        if self._chosen() == name:
            (self.folder / _CHOSEN).unlink(missing_ok=True)
        self._path(name).unlink()

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise click.ClickException(
                f"{name!r} is no name of a profile: letters, digits, '.', '_' and '-'"
            )
        return self.folder / f"{name}{_ENDING}"


def profiles() -> Profiles:
    """Those of whoever runs this."""
    if folder := os.environ.get(FOLDER):
        return Profiles(Path(folder))
    settings = os.environ.get("XDG_CONFIG_HOME") or _home() / ".config"
    return Profiles(Path(settings) / "kafkalite" / "profiles")


def _home() -> Path:
    """Where nothing is and nothing can be kept for somebody who has none, as in containers."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(os.devnull)
