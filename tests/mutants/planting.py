"""A patch of a defect, and a copy of the project that it is planted in.

Owns the head of a patch: `# ID: what is wrong` and `# net: arguments of pytest`. Invariant: the
tree that is worked in is never changed, and a copy is clean before the next defect is planted.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
COPIED = ("src", "tests", "protocol_specs", "bench", "docs", "pyproject.toml")
NET_SECONDS = 300
TESTS_FAILED = 1  # pytest's exit code; 2 to 5 mean that the net itself is torn


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted defect."""

    path: Path
    what: str
    net: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one."""

    is_caught: bool
    seconds: float
    detail: str = ""


def read_mutant(path: Path) -> Mutant:
    """A patch by its head; ValueError when that does not say what it must."""
    head = [line.lstrip("# ").rstrip() for line in path.read_text().splitlines()[:6]]
    what = next((line.partition(": ")[2] for line in head if line.startswith(path.stem)), "")
    net = next((line.partition(": ")[2] for line in head if line.startswith("net:")), "")
    if not what or not net:
        raise ValueError(f"{path} must begin with '# {path.stem}: …' and '# net: …'")
    return Mutant(path, what, tuple(shlex.split(net)))


def all_mutants() -> list[Mutant]:
    return [read_mutant(path) for path in sorted(FOLDER.glob("*.patch"))]


def still_applies(mutant: Mutant, root: Path = ROOT) -> bool:
    """Whether the lines that it changes are still there."""
    return _apply(root, mutant, "--check").returncode == 0


def copy_project(into: Path) -> None:
    """All that tests need, to be spoilt at will."""
    into.mkdir(exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "target", "*.class")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, into / name, ignore=ignored)
        else:
            shutil.copy2(source, into / name)


def try_out(mutant: Mutant, copy: Path) -> Verdict:
    """Plants a defect in a copy, casts its net, and takes it out again."""
    began = time.monotonic()
    planted = _apply(copy, mutant)
    if planted.returncode:
        return Verdict(False, 0.0, f"cannot be planted: {planted.stderr.strip().splitlines()[0]}")
    try:
        code, last = _cast(mutant.net, copy)
    finally:
        _apply(copy, mutant, "--reverse")
    is_caught = code == TESTS_FAILED
    if is_caught and _cast(_alone(last) or mutant.net, copy)[0] != 0:
        is_caught, last = False, f"fails without the defect, too: {last}"
    return Verdict(is_caught, time.monotonic() - began, last)


def _alone(last: str) -> tuple[str, ...] | None:
    """The test that failed, if pytest's last words tell it."""
    found = re.match(r"(?:FAILED|ERROR) (\S+::\S+)(?: - |$)", last)
    return None if found is None else (found[1],)


def _apply(root: Path, mutant: Mutant, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "apply", "--whitespace=nowarn", *options, str(mutant.path)]
    # A copy lies in no repository, and must not be taken for a part of one that is around it.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(root.parent)}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def _cast(net: tuple[str, ...], copy: Path) -> tuple[int, str]:
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *net, "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=NET_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no verdict after {NET_SECONDS} s"
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (failed or lines or [done.stderr.strip()[-200:]])[-1]
