"""What really went wrong, out of the text of a Java or Spark error.

Owns the choice of the one line that says it. Pure.
"""

import re
from collections.abc import Iterator

# `java.lang.X: words`, after nothing, `: ` or `Caused by: `.
_THROWN = re.compile(r"^(?:: |Caused by: )?((?:[a-z_$][\w$]*\.)+[A-Z][\w$]*)(?:: (.*))?$")
_CALLED = re.compile(r"^An error occurred while calling \S+\.$")
_FRAME = re.compile(r"^\s*(?:at |\.\.\. \d+ )")
_EMPTY = ("", "null")


def cause_of(text: str) -> str:
    """The deepest cause that has words, with its class; else the first line that says anything."""
    lines = text.splitlines()
    thrown = list(_thrown(lines))
    for name, words in reversed(thrown):
        if words.strip() not in _EMPTY:
            return f"{name.rpartition('.')[2]}: {words.strip()}"
    if thrown:
        return thrown[-1][0].rpartition(".")[2]
    said = (line.strip() for line in lines if line.strip() and not _CALLED.match(line.strip()))
    return next(said, text.strip())


def _thrown(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each exception of a chain; words that go on over lines are those of the first."""
    for line in lines:
        found = None if _FRAME.match(line) else _THROWN.match(line.strip())
        if found is not None:
            yield found[1], found[2] or ""
