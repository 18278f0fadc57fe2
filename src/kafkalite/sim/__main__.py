"""`python -m kafkalite.sim`: runs seeds and prints what came of them; fails on an anomaly."""

import logging
import sys
import time
from collections import Counter
from collections.abc import Callable

import click

from kafkalite.sim.cluster_run import simulate_cluster
from kafkalite.sim.coverage import CLIENTS, CLUSTERS, GROUPS, missing
from kafkalite.sim.group_run import simulate_groups
from kafkalite.sim.run import Verdict, simulate

REPORT_EVERY = 100
# What a world may be about.
PLAYS: dict[str, Callable[[int], Verdict]] = {
    CLIENTS: simulate, GROUPS: simulate_groups, CLUSTERS: simulate_cluster,
}  # fmt: skip


@click.command()
@click.option("--seeds", default=200, show_default=True, help="How many seeds to run.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--verbose", is_flag=True, help="Print a line for every seed.")
@click.option("--play", "plays", type=click.Choice([*PLAYS]), multiple=True,
              default=[CLIENTS, GROUPS],
              show_default=True, help="What the worlds are about; may be given more than once.")
def main(seeds: int, first: int, verbose: bool, plays: tuple[str, ...]) -> None:
    """Simulates brokers and clients, and checks that nothing is lost, doubled or half visible."""
    logging.disable(logging.CRITICAL)  # a broker that is killed complains, as it should
    is_sound = [_search(play, range(first, first + seeds), verbose=verbose) for play in plays]
    sys.exit(0 if all(is_sound) else 1)


def _search(play: str, seeds: range, *, verbose: bool) -> bool:
    totals: Counter[str] = Counter()
    bad: list[int] = []
    started, logical_ms = time.perf_counter(), 0
    for number, seed in enumerate(seeds, 1):
        verdict = PLAYS[play](seed)
        totals.update(verdict.counts)
        logical_ms += verdict.logical_ms
        if verdict.anomalies:
            bad.append(seed)
            click.echo(f"{play}, seed {seed}: {verdict.anomalies}")
        elif verbose:
            click.echo(f"{play}, seed {seed}: {_counted(verdict.counts)}")
        if number % REPORT_EVERY == 0 or number == len(seeds):
            counted = _counted(totals)
            click.echo(f"{play}: {number} seeds, {len(bad)} with anomalies; {counted}")
    click.echo(
        f"{play}, seeds {seeds.start} to {seeds.stop - 1}: {logical_ms / 3_600_000:.1f} logical"
        f" hours in {time.perf_counter() - started:.0f} s, anomalies in {bad or 'none'}"
    )
    unmet = missing(totals, len(seeds), play)
    if unmet:
        click.echo(f"{play}, never met: {', '.join(unmet)}")
    return not (bad or unmet)


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
