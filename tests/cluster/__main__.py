"""`python -m tests.cluster --rounds N --seed S`: rounds of faults over broker processes."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests import mounts
from tests.cluster.nodes import ALL, BESIDE_OURS, running
from tests.cluster.rounds import Round, run
from tests.compat.brokers import RUN_FOLDER


def main() -> int:
    options = _options()
    if not mounts.are_there() and mounts.can_be():
        return mounts.run_within("tests.cluster")
    home = Path(tempfile.mkdtemp(prefix="kafkalite-cluster-", dir=options.folder))
    keeper = _start_keeper()
    rounds: list[Round] = []
    with running(home, kafka=options.kafka) as cluster:
        for seed in range(options.seed, options.seed + options.rounds):
            one = run(cluster, seed, only=options.only)
            rounds.append(one)
            _tell(one, home, options.kafka)
            if one.wrong:
                _save(home)
                break  # what comes next would be told of the same
    is_good = all(not each.wrong for each in rounds)
    _sum_up(rounds)
    if is_good and not options.keep:
        shutil.rmtree(home)
    keeper.communicate()
    return 0 if is_good else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--only", default="", help="faults with this in their names")
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument(
        "--kafka", action="store_const", const=ALL, default=(), help="all of Apache Kafka 4.3.1"
    )
    whose.add_argument(
        "--mixed", action="store_const", const=BESIDE_OURS, dest="kafka",
        help="two brokers of Apache Kafka 4.3.1 beside one of ours and our controller",
    )
    parser.add_argument("--folder", type=Path, help="where data and logs lie")
    parser.add_argument("--keep", action="store_true", help="leave them there, also of good rounds")
    return parser.parse_args()


def _save(home: Path) -> None:
    """From disks that are gone with this process."""
    if mounts.are_there():
        with suppress(shutil.Error):  # of files that go meanwhile
            shutil.copytree(home / "data", home / "data-of-disks")


def _start_keeper() -> subprocess.Popen[bytes]:
    """Somebody who ends the processes that run, also if this is killed."""
    folder = os.environ[RUN_FOLDER] = tempfile.mkdtemp(prefix="kafkalite-test-")
    call = [sys.executable, "-m", "tests.compat.keeper", folder]
    return subprocess.Popen(call, stdin=subprocess.PIPE, start_new_session=True)


def _tell(one: Round, home: Path, kafka: tuple[int, ...]) -> None:
    print(
        f"seed {one.seed}: {'; '.join(one.faults)}: {one.acknowledged} acknowledged, "
        f"{one.copied} copied in {one.transactions} transactions by {one.copiers} of {one.copier}, "
        f"settled in {one.settled_s:.1f} s, {one.seconds:.0f} s",
        flush=True,
    )
    if one.wrong:
        print(f"seed {one.seed} FAILED:")
        for each in one.wrong:
            print(f"  {each}")
        theirs = {ALL: " ARGS=--kafka", BESIDE_OURS: " ARGS=--mixed"}.get(kafka, "")
        print(f"  again: make cluster ROUNDS=1 SEED={one.seed}{theirs}; logs and data: {home}")


def _sum_up(rounds: list[Round]) -> None:
    good = sum(not each.wrong for each in rounds)
    print(
        f"{good} of {len(rounds)} rounds good: {sum(len(each.faults) for each in rounds)} faults, "
        f"{sum(each.acknowledged for each in rounds)} acknowledged, "
        f"{sum(each.transactions for each in rounds)} transactions"
    )


if __name__ == "__main__":
    raise SystemExit(main())
