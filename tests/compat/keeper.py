"""`python -m tests.compat.keeper FOLDER`: ends the brokers of a test run when the run ends.

A process of its own, because a run may be killed: it waits for the end of its standard input, which
comes when the process that holds the other end is gone, however it went.
"""

import shutil
import sys
from pathlib import Path

from tests.compat.brokers import stop_all


def main() -> None:
    folder = Path(sys.argv[1])
    sys.stdin.buffer.read()
    stop_all(folder)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
