"""`kafkalite metrics`: the numbers of any Kafka cluster, for Prometheus."""

from __future__ import annotations

import sys
from contextlib import closing

import click

from kafkalite.cli._addresses import Address, listening
from kafkalite.cli._as_program import ending_well
from kafkalite.cli._where import Where, cluster_options


@click.command()
@cluster_options
@click.option("--listen", "address", type=Address(), default="127.0.0.1:9308", show_default=True,
              help="Where to answer; port 0 takes one that is free.")
@click.option("--once", is_flag=True, help="Print the page instead, and end.")
@click.option("--page", "path", type=click.Choice(["/metrics", "/metrics/kminion"]),
              default="/metrics", show_default=True, help="Which page --once prints.")
@click.option("--cluster-name", "name", help="In the label cluster_name [the cluster's id].")
@click.option("--look-every", "look_every_s", type=click.FloatRange(min=1), default=10.0,
              show_default=True, help="Seconds between looks of its own, for lag in seconds.")
def command(
    where: Where,
    address: tuple[str, int],
    once: bool,
    path: str,
    name: str | None,
    look_every_s: float,
) -> None:
    """Offsets, lag, groups and sizes of a cluster, in the names of kafka_exporter,
    kafka-lag-exporter (/metrics) and KMinion (/metrics/kminion); how groups do, as Burrow tells it
    (/v3/kafka).

    \b
        kafkalite metrics -b broker:9092
        curl http://127.0.0.1:9308/metrics
    """
    try:
        from kafkalite.metrics.pages import Pages
        from kafkalite.metrics.server import serve
    except ImportError as error:
        raise click.ClickException(
            f"this needs prometheus-client, starlette and uvicorn ({error}): "
            "pip install 'kafkalite[web]'"
        ) from None
    with ending_well(), closing(where.connect()) as cluster:
        pages = Pages(cluster, name)
        if once:
            sys.stdout.buffer.write(pages.page(path))
            return
        listener = listening("--listen", *address)
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"kafkalite: http://{shown}:{port}/metrics", err=True)
        serve(pages, listener, look_every_s, where.connect)
