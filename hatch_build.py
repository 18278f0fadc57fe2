"""Puts the protocol's specs, and the code generated from them, into the wheel.

An editable install gets neither: there the package reads the tree's own `protocol_specs/`, and
copies would go stale unseen.

With KAFKALITE_COMPILE=1 mypyc compiles the modules that produce and fetch pass through (`compiled`
in pyproject.toml), and the wheel is one for this platform. Their sources are in it, too: of two
modules with one name Python takes the compiled one.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GENERATE = """
import sys
from pathlib import Path
from kafkalite.protocol import wheel_building
wheel_building.write_all(Path(sys.argv[1]))
"""

# Types of packages that are not installed are not needed: `make lint` has checked them.
TRANSLATE = """
import sys
from mypyc.build import mypycify
target, *modules = sys.argv[1:]
options = ["--config-file=", "--ignore-missing-imports", f"--cache-dir={target}/cache"]
extensions = mypycify(
    [*options, *modules], target_dir=f"{target}/c", group_name="kafkalite", debug_level="0"
)
"""
COMPILE = f"""{TRANSLATE}
from setuptools import setup
setup(
    name="kafkalite",
    packages=[],
    ext_modules=extensions,
    script_args=["build_ext", f"--build-lib={{target}}/lib", f"--build-temp={{target}}/temp"],
)
"""


class WheelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds to a standard wheel only."""

    def dependencies(self) -> list[str]:
        """The compiler, in the version that `make lint` checks the types with."""
        tools = self.metadata.core.optional_dependencies["dev"]
        return [tool for tool in tools if tool.startswith("mypy")] if _is_compiled() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        self.made = TemporaryDirectory()
        included = build_data["force_include"]
        generated = Path(self.made.name, "generated")
        generated.mkdir()
        self._run(GENERATE, str(generated))
        included["protocol_specs"] = "kafkalite/protocol_specs"
        included[str(generated)] = "kafkalite/protocol/generated"
        if _is_compiled():
            self._run(COMPILE, self.made.name, *self.config["compiled"])
            libraries = Path(self.made.name, "lib")
            for library in filter(Path.is_file, libraries.rglob("*")):
                included[str(library)] = str(library.relative_to(libraries))
            build_data.update(pure_python=False, infer_tag=True)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version == "standard":
            self.made.cleanup()

    def _run(self, program: str, *arguments: str) -> None:
        call = [sys.executable, "-c", program, *arguments]
        subprocess.run(call, check=True, cwd=Path(self.root) / "src")


def _is_compiled() -> bool:
    return os.environ.get("KAFKALITE_COMPILE", "0") not in ("", "0")
