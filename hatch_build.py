"""Puts the protocol's specs into the wheel as `kafkalite/protocol_specs`.

An editable install gets no copy: there the package reads the tree's own `protocol_specs/`, and a
copy would go stale unseen.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SpecsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the folder to a standard wheel only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"]["protocol_specs"] = "kafkalite/protocol_specs"
