"""Apache Kafka's command line tools, all calls of a test run in one JVM of its own.

A JVM takes a second to start, and some more until a tool is loaded; here that is paid once.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kafkalite.jvm import jars, java
from tests.compat.java_classes import compile_classes

SOURCE = Path(__file__).parent / "java" / "Tools.java"


class JavaTools:
    """Runs tools by the names of their classes."""

    def __init__(self, classes: Path) -> None:
        compile_classes([SOURCE], classes, ["reference"])
        call = java.command(f"{classes}:{jars.class_path('reference')}", "Tools", heap="192M")
        call[1:1] = [
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Duser.timezone=UTC",
            f"-Djava.io.tmpdir={classes}",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",  # what a tool does at the JVM's end
        ]
        self._process = subprocess.Popen(
            call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def run(self, tool: str, *words: str, text: str = "") -> str:
        """What a tool wrote, to its output and of errors, given a text; whatever its exit status
        is."""
        assert not any("\t" in word or "\n" in word for word in words)
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        typed = text.encode()
        pipe_in.write("\t".join([str(len(typed)), tool, *words]).encode() + b"\n" + typed)
        pipe_in.flush()
        _, size = pipe_out.readline().split()
        return pipe_out.read(int(size)).decode()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
