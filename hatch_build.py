"""Puts the protocol's specs, and the code generated from them, into the wheel.

An editable install gets neither: there the package reads the tree's own `protocol_specs/`, and
copies would go stale unseen.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GENERATE = """
import sys
from pathlib import Path
from kafkalite.protocol import packaging
packaging.write_all(Path(sys.argv[1]))
"""


class SpecsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds both folders to a standard wheel only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        self.generated = TemporaryDirectory()
        subprocess.run(
            [sys.executable, "-c", GENERATE, self.generated.name],
            check=True,
            cwd=Path(self.root) / "src",
        )
        build_data["force_include"]["protocol_specs"] = "kafkalite/protocol_specs"
        build_data["force_include"][self.generated.name] = "kafkalite/protocol/generated"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version == "standard":
            self.generated.cleanup()
