"""`python -m kafkalite.tools kafka-topics …`: one tool, its words behind its name."""

from __future__ import annotations

import sys

from kafkalite.tools.running import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
