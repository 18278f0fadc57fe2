"""`cub` and `ub`, as init containers call them: wait until a cluster has its brokers.

Only what has a meaning here is done: kafka-ready; zk-ready, which is so at once, because there is
no ZooKeeper to wait for; path and ensure. What else these tools can is refused with a sentence.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from kafkalite.container.asking import NoAnswer, count_brokers

PAUSE_S = 0.2
ATTEMPT_S = 2.0


def main(arguments: list[str]) -> int:
    """The program: 0 when it is so, 1 with one sentence when it is not."""
    parser = argparse.ArgumentParser("cub")
    commands = parser.add_subparsers(dest="command", required=True)
    ready = commands.add_parser("kafka-ready", help="wait until so many brokers are there")
    ready.add_argument("-b", "--bootstrap-servers", "--bootstrap_broker_list", required=True)
    ready.add_argument("-c", "--config", help="accepted; connections are plain")
    ready.add_argument("-s", "--security-protocol", default="PLAINTEXT", choices=["PLAINTEXT"])
    ready.add_argument("brokers", type=int)
    ready.add_argument("timeout_s", type=float)
    zookeeper = commands.add_parser("zk-ready", help="nothing to wait for")
    zookeeper.add_argument("rest", nargs="*")
    ensure = commands.add_parser("ensure", help="is a variable set")
    ensure.add_argument("variable")
    path = commands.add_parser("path", help="may a path be used")
    path.add_argument("path")
    path.add_argument("mode", choices=["writable", "readable", "executable", "exists"])
    given = parser.parse_args(arguments)
    failure = _failure(given)
    if failure is not None:
        print(failure, file=sys.stderr)
    return 0 if failure is None else 1


def _failure(given: argparse.Namespace) -> str | None:
    if given.command == "kafka-ready":
        return wait_for(given.bootstrap_servers, given.brokers, given.timeout_s)
    if given.command == "ensure" and given.variable not in os.environ:
        return f"{given.variable} is required"
    modes = {"writable": os.W_OK, "readable": os.R_OK, "executable": os.X_OK, "exists": os.F_OK}
    if given.command == "path" and not os.access(given.path, modes[given.mode]):
        return f"{given.path} is not {given.mode}"
    return None


def wait_for(bootstrap: str, brokers: int, timeout_s: float) -> str | None:
    """Why they are not all there when the time is over; None once they are."""
    end = time.monotonic() + timeout_s
    while True:
        count, why = _most(bootstrap)
        if count >= brokers:
            return None
        if time.monotonic() >= end:
            seen = f"{count} of {brokers} brokers are there" if count else why
            return f"not ready after {timeout_s:g} seconds: {seen}"
        time.sleep(PAUSE_S)


def _most(bootstrap: str) -> tuple[int, str]:
    """How many brokers the first of these knows that answers, or why none does."""
    why = f"{bootstrap} names no HOST:PORT"
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition("://")[2].rpartition(":")
        if host and port.isdecimal():
            try:
                return count_brokers(host.strip("[]"), int(port), ATTEMPT_S), ""
            except NoAnswer as error:
                why = str(error)
    return 0, why


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
