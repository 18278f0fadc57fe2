"""Runs the few tests again, alone, that failed among all others: `python -m tests.once_more`.

Of twelve thousand tests with real clients some meet a race of a client's once in hundreds of runs.
As in Apache Kafka's own build a run with no more failures than these few goes on with them, once,
and says their names: a test that failed and then passed is a thing to look into, and no success.
What fails again fails. `make test STEADY=1` takes no failure.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

MOST = 3
LAST_FAILED = Path(".pytest_cache", "v", "cache", "lastfailed")
# What pytest-xdist puts behind the id of a test that stays with its group.
_GROUP = re.compile(r"@[^\[\]]+$")


def failed_last(known: Path = LAST_FAILED) -> list[str]:
    """The ids of the tests that failed in the last run, as pytest takes them."""
    names = json.loads(known.read_text()) if known.exists() else {}
    return [_GROUP.sub("", name) for name in names]


def main() -> int:
    failed = failed_last()
    if not 0 < len(failed) <= MOST:
        return 1
    print(f"once more, alone: {len(failed)} of the tests failed", flush=True)
    status = subprocess.call([sys.executable, "-m", "pytest", *failed])
    if status == 0:
        print("UNSTEADY: failed among all others, and passed alone:", *failed, sep="\n  ")
    return status


if __name__ == "__main__":
    sys.exit(main())
