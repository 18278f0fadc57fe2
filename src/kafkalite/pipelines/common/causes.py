"""What really went wrong, out of the text of a Java or Spark error, and what to do about it.

Owns the choice of the one line that says it, and the table of cures. Pure.
"""

import re
from collections.abc import Iterator

# `java.lang.X: words`, after nothing, `: ` or `Caused by: `.
_THROWN = re.compile(r"^(?:: |Caused by: )?((?:[a-z_$][\w$]*\.)+[A-Z][\w$]*)(?:: (.*))?$")
_CALLED = re.compile(r"^An error occurred while calling \S+\.$")
_FRAME = re.compile(r"^\s*(?:at |\.\.\. \d+ )")
_EMPTY = ("", "null")

# What is found in a cause, and what mends it; the first that fits is told.
CURES = (
    (r"RecordTooLarge|MessageSizeTooLarge|larger than the max message size",
     "raise max.message.bytes of the topic that is written to"),
    (r"(?:Topic|Group|Cluster|TransactionalId)Authorization",
     "grant it to this client's principal, or log in as another with the kafka.sasl.* options"),
    (r"SaslAuthentication|SslAuthentication|SSLHandshake|IllegalSaslState",
     "check kafka.security.protocol and the kafka.sasl.* and kafka.ssl.* options"),
    (r"No resolvable bootstrap urls|UnknownHost", "check the name in the bootstrap servers"),
    (r"No space left on device|Disk quota exceeded",
     "make room there and start it again: it goes on where it was"),
    (r"OutOfMemoryError|Java heap space",
     "give it more with --conf spark.driver.memory=4g, or smaller batches with "
     "--option maxOffsetsPerTrigger=100000"),
    (r"Permission denied|AccessControlException",
     "let the user that runs this write there, or give another path"),
    (r"TimeoutException|Timed out waiting|Connection refused",
     "check that a broker listens there, and that this machine reaches the addresses that it "
     "advertises"),
)  # fmt: skip


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


def cure_of(cause: str) -> str:
    """What to do about a cause, as the end of its sentence; nothing where nobody knows."""
    cures = (cure for pattern, cure in CURES if re.search(pattern, cause))
    found = next(cures, None)
    return "" if found is None else f": {found}"


def _thrown(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each exception of a chain; words that go on over lines are those of the first."""
    for line in lines:
        found = None if _FRAME.match(line) else _THROWN.match(line.strip())
        if found is not None:
            yield found[1], found[2] or ""
