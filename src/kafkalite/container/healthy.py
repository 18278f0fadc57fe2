"""The image's health check: does the broker answer, at the port that it has written when it began
to serve, to the first of some files that may be written there. Ends with 0 or, with one sentence,
with 1."""

from __future__ import annotations

import socket
import sys

from kafkalite.container.asking import NoAnswer, count_brokers

TIMEOUT_S = 5.0


def main(*port_files: str) -> int:
    """The program: asks at this machine's own names, because a listener may be at one alone."""
    port = next(filter(None, map(_port_in, port_files)), None)
    if port is None:
        print("the broker does not serve yet")
        return 1
    why = ""
    for host in ("localhost", socket.gethostname()):
        try:
            count_brokers(host, port, TIMEOUT_S)
        except NoAnswer as error:
            why = why or str(error)
        else:
            return 0
    print(why)
    return 1


def _port_in(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
