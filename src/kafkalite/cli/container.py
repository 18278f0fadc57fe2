"""`kafkalite container`: what the image runs. Settings come from KAFKA_… variables of the
environment, spelled as Apache Kafka's own image spells them.

Elsewhere the environment is never read: a Kubernetes service called `kafka` puts KAFKA_PORT and
its like into every container beside it, and those are told apart here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

import click

PREFIX = "KAFKA_"
LISTEN = "0.0.0.0:9092"
DATA_FOLDER = "/var/lib/kafkalite"

# Options of a JVM and its logging, which there is none of here, and of images that wrap Kafka.
_NOT_SETTINGS = re.compile(
    r"KAFKA_(\w+_OPTS|OPTS|JMX_\w+|LOG4J_\w+|VERSION|HOME|USER|GROUP|CLUSTER_ID|GC_LOG_\w+)"
)
# What Kubernetes adds for a service of that name.
_OF_A_SERVICE = re.compile(r"KAFKA_(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_(TCP|UDP)\w*)")


@click.command(
    hidden=True, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Serve with the settings that the environment names; ARGUMENTS go to `kafkalite serve`."""
    from kafkalite.cli.main import main

    call = ["serve", *serve_arguments(os.environ), *arguments]
    main.main(call, prog_name="kafkalite", parent=context.parent)


def serve_arguments(environment: Mapping[str, str]) -> list[str]:
    """The options of `kafkalite serve` that stand for these variables."""
    found = dict(settings(environment))
    call = [] if "listeners" in found else ["--listen", LISTEN]
    call += [] if found.keys() & {"log.dirs", "log.dir"} else ["--data-dir", DATA_FOLDER]
    for name, value in sorted(found.items()):
        call += ["--override", f"{name}={value}"]
    return call


def settings(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each variable that is a setting, under the setting's own name.

    One underscore is a dot, two are an underscore and three a dash.
    """
    for variable, value in environment.items():
        is_foreign = _NOT_SETTINGS.fullmatch(variable) or _OF_A_SERVICE.fullmatch(variable)
        if variable.startswith(PREFIX) and not is_foreign and not value.startswith("tcp://"):
            name = variable.removeprefix(PREFIX).lower()
            name = name.replace("___", "-").replace("__", "\0").replace("_", ".")
            yield name.replace("\0", "_"), value
