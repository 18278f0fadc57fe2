"""`python -m kafkalite.tools kafka-topics …`: one tool, its words behind its name."""

from __future__ import annotations

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback of what is only being loaded

from kafkalite.tools.running import program

if __name__ == "__main__":
    sys.exit(program(sys.argv[1:]))
