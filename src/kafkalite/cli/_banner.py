"""What a broker prints when it serves: where it is, where its data is, and what to try."""

from __future__ import annotations

from collections.abc import Mapping

import click

import kafkalite
from kafkalite.config import BrokerConfig

Address = tuple[str, int]

DURABILITY = "kafkalite.durability"

USUAL_ADDRESS = "localhost:9092"
EXAMPLES = """\
  try     echo hello | kafkalite produce {where}greetings
          kafkalite consume {where}greetings
"""
# What programs wait for that start an Apache Kafka, each its own line of these.
READY = (
    "[KafkaServer id={node}] started",
    "[KafkaRaftServer nodeId={node}] Kafka Server started",
    "[BrokerLifecycleManager id={node}] The broker has been unfenced. "
    "Transitioning from RECOVERY to RUNNING.",
)


def show(
    addresses: Mapping[str, Address],
    config: BrokerConfig,
    *,
    in_memory: bool,
    control: Address | None = None,
    examples: str | None = None,
    console: str | None = None,
) -> None:
    """Prints the banner, with these examples or the usual ones, and the lines that tools wait for.
    """
    address = _readable(next(iter(addresses.values())))
    click.echo(f"kafkalite {kafkalite.__version__}, compatible with the Apache Kafka protocol")
    for name, bound in addresses.items():
        click.echo(f"  listen  {name}://{_readable(bound)}")
    click.echo(f"  data    {_data(config, in_memory)}")
    if control is not None:
        click.echo(f"  control http://{_readable(control)}")
    if console is not None:
        click.echo(f"  console {console}")
    where = "" if address == USUAL_ADDRESS else f"-b {address} "
    click.echo(EXAMPLES.format(where=where) if examples is None else examples, nl=False)
    for line in READY:
        click.echo(line.format(node=config.node_id))


def _readable(address: Address) -> str:
    host, port = address
    return f"{'localhost' if host in ('0.0.0.0', '::', '127.0.0.1', '::1') else host}:{port}"


def _data(config: BrokerConfig, in_memory: bool) -> str:
    if in_memory:
        return (
            "in memory: gone when this process ends (a Spark checkpoint that outlives it will "
            "report data loss)"
        )
    durability = config.get_str(DURABILITY)
    kept = "acknowledged when on disk" if durability == "fsync" else "flushed by the system"
    return f"{', '.join(config.log_dirs)} ({durability}: {kept})"
