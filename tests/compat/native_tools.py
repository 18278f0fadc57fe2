"""kafkalite's own command line tools, called as the Java ones, which do what is not there yet."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

from kafkalite.tools.table import CLASSES
from tests.compat.java_tools import JavaTools

TIMEOUT_S = 60
# What a tool logs, up to the name of its class.
LOGGED = re.compile(r"^\[[-\d]+ [:,\d]+\] [A-Z]+ (?:.*\n)*?.*\([\w.$]+\)\n", re.MULTILINE)


class NativeTools:
    """Runs tools by the names of their classes."""

    def __init__(self, others: Callable[[], JavaTools]) -> None:
        self._others = others

    def run(self, tool: str, *words: str, text: str = "") -> str:
        """What a tool wrote, but for its log."""
        if tool not in CLASSES.values():
            return self._others().run(tool, *words, text=text)
        done = subprocess.run(
            [sys.executable, "-m", "kafkalite.tools", tool, *words],
            input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        return LOGGED.sub("", done.stdout.decode())
