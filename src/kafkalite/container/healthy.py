"""The image's health check: does the broker answer, at the port that it has written when it began
to serve. Ends with 0 or, with one sentence, with 1."""

from __future__ import annotations

import socket
import sys

from kafkalite.container.asking import NoAnswer, count_brokers

TIMEOUT_S = 5.0


def main(port_file: str) -> int:
    """The program: asks at this machine's own names, because a listener may be at one alone."""
    try:
        with open(port_file, encoding="ascii") as file:
            port = int(file.read())
    except (OSError, ValueError):
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
