"""`python -m kafkalite.sim`: runs seeds and prints what came of them; fails on an anomaly."""

import logging
import sys
import time
from collections import Counter

import click

from kafkalite.sim.cluster_run import simulate_cluster
from kafkalite.sim.coverage import missing
from kafkalite.sim.run import simulate

REPORT_EVERY = 100


@click.command()
@click.option("--seeds", default=200, show_default=True, help="How many seeds to run.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--cluster", "of_clusters", is_flag=True, help="Three brokers, their controller.")
@click.option("--verbose", is_flag=True, help="Print a line for every seed.")
def main(seeds: int, first: int, of_clusters: bool, verbose: bool) -> None:
    """Simulates brokers and clients, and checks that nothing is lost, doubled or half visible."""
    logging.disable(logging.CRITICAL)  # a broker that is killed complains, as it should
    totals: Counter[str] = Counter()
    bad: list[int] = []
    started, logical_ms = time.perf_counter(), 0
    for number, seed in enumerate(range(first, first + seeds), 1):
        verdict = simulate_cluster(seed) if of_clusters else simulate(seed)
        totals.update(verdict.counts)
        logical_ms += verdict.logical_ms
        if verdict.anomalies:
            bad.append(seed)
            click.echo(f"seed {seed}: {verdict.anomalies}")
        elif verbose:
            click.echo(f"seed {seed}: {_counted(verdict.counts)}")
        if number % REPORT_EVERY == 0 or number == seeds:
            click.echo(f"{number} seeds, {len(bad)} with anomalies; {_counted(totals)}")
    click.echo(
        f"seeds {first} to {first + seeds - 1}: {logical_ms / 3_600_000:.1f} logical hours"
        f" in {time.perf_counter() - started:.0f} s, anomalies in {bad or 'none'}"
    )
    unmet = missing(totals, seeds, of_clusters=of_clusters)
    if unmet:
        click.echo(f"never met: {', '.join(unmet)}")
    sys.exit(1 if bad or unmet else 0)


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
