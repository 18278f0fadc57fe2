"""What Spark and its JVM say themselves: in a file, which is named when a command fails.

Owns the file. One that nobody asked for by name is gone when all went well.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class SparkLog:
    """Where it is; a JVM that runs already has places of its own."""

    def __init__(self, named: str = "") -> None:
        self._named = named
        self._path: Path | None = None

    def open(self) -> Path:
        """For a JVM that is about to start."""
        if self._named:
            self._path = Path(self._named).absolute()
            self._path.touch()
        else:
            descriptor, name = tempfile.mkstemp(prefix="kafkalite-spark-", suffix=".log")
            os.close(descriptor)
            self._path = Path(name)
        return self._path

    def hint(self) -> str:
        """What to add to a failure; nothing when there is nothing to read."""
        if self._path is None or not self._path.exists() or not self._path.stat().st_size:
            return ""
        return f"\nSpark's own log: {self._path}"

    def forget(self) -> None:
        """Nobody has to read it."""
        if self._path is not None and not self._named:
            self._path.unlink(missing_ok=True)
            Path(f"{self._path}.1").unlink(missing_ok=True)
