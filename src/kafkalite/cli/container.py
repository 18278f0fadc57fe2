"""`kafkalite container`: what the image runs. Settings come from KAFKA_… variables of the
environment, spelled as the images of Apache Kafka, Confluent and Bitnami spell them.

Elsewhere the environment is never read: a Kubernetes service called `kafka` puts KAFKA_PORT and
its like into every container beside it, and those are told apart here. A variable that no broker
knows is somebody else's, and stops nothing: it is named in one line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import click

PREFIX = "KAFKA_"
BITNAMI_PREFIX = "KAFKA_CFG_"
LISTEN = "0.0.0.0:9092"
DATA_FOLDER = "/var/lib/kafkalite"
ANY_ADDRESS = "0.0.0.0"
CREATE_TOPICS = "KAFKA_CREATE_TOPICS"
SEPARATOR = "KAFKA_CREATE_TOPICS_SEPARATOR"

# Options of a JVM and its logging, which there is none of here, of images that wrap Kafka, and of
# other programs whose variables begin alike.
_NOT_SETTINGS = re.compile(
    r"KAFKA_(\w+_OPTS|OPTS|JMX_\w+|LOG4J_\w+|VERSION|HOME|USER|GROUP|\w*CLUSTER_ID|GC_LOG_\w+"
    r"|CREATE_TOPICS\w*|CONFLUENT_\w+|REST_\w+|SCHEMA_REGISTRY_\w+|UI_\w+|KSQL_\w+"
    r"|ADVERTISED_HOST_NAME|ADVERTISED_PORT)"
)
# What Kubernetes adds for a service of that name.
_OF_A_SERVICE = re.compile(r"KAFKA_(SERVICE_HOST|SERVICE_PORT\w*|PORT|PORT_\d+_(TCP|UDP)\w*)")
# How Bitnami's image calls what the broker calls otherwise.
_OTHER_NAMES = {
    "max.message.bytes": "message.max.bytes",
    "segment.bytes": "log.segment.bytes",
    "logs.dirs": "log.dirs",
}
_DIRECTORY = {"log.dir": "log.dirs"}
_LISTENER = re.compile(r"(?P<name>[^:]+)://(?P<host>.*):(?P<port>[^:]*)")


@click.command(
    hidden=True, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Serve with the settings that the environment names; ARGUMENTS go to `kafkalite serve`."""
    from kafkalite.cli.main import main

    passed_over = list(unknown(settings(os.environ)))
    if passed_over:
        click.echo(f"not of a broker's settings, and ignored: {', '.join(passed_over)}", err=True)
    call = ["serve", *serve_arguments(os.environ, given(arguments)), *arguments]
    main.main(call, prog_name="kafkalite", parent=context.parent)


def given(arguments: Sequence[str]) -> set[str]:
    """What the arguments of `kafkalite serve` say themselves: `listeners`, `log.dirs`, or both."""
    from kafkalite.cli._properties import PropertiesFile
    from kafkalite.cli.serve import command as serve

    context = click.Context(serve)
    options, _, _ = serve.make_parser(context).parse_args(list(arguments))
    found: set[str] = set()
    if options.get("properties") not in (None, "-"):
        found |= PropertiesFile().convert(options["properties"], None, context).keys()
    found |= {pair.partition("=")[0].strip() for pair in options.get("overrides", ())}
    found |= {"listeners"} if "listen" in options else set()
    found |= {"log.dirs"} if options.keys() & {"data_dir", "in_memory"} else set()
    return {_DIRECTORY.get(name, name) for name in found} & {"listeners", "log.dirs"}


def serve_arguments(
    environment: Mapping[str, str], said: Collection[str] = frozenset()
) -> list[str]:
    """The options of `kafkalite serve` that stand for these variables, and for what neither they
    nor the arguments, which have `said` some settings, name."""
    found = dict(settings(environment))
    for name in dict(_unknown_names(found)):
        del found[name]
    _complete_listeners(found, environment)
    named = {_DIRECTORY.get(name, name) for name in found} | set(said)
    call = [] if "listeners" in named else ["--listen", LISTEN]
    call += [] if "log.dirs" in named else ["--data-dir", DATA_FOLDER]
    for name, value in sorted(found.items()):
        call += ["--override", f"{name}={value}"]
    for topic in topics(environment):
        call += ["--topic", topic]
    return call


# --- settings -------------------------------------------------------------------------------------


def settings(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each variable that is a setting, under the setting's own name; an empty one is not set.

    One underscore is a dot, two are an underscore and three a dash. What KAFKA_CFG_ says counts
    before what KAFKA_ says.
    """
    found: dict[str, str] = {}
    for variable in sorted(environment, key=lambda name: name.startswith(BITNAMI_PREFIX)):
        value = environment[variable]
        plain = f"{PREFIX}{variable.removeprefix(BITNAMI_PREFIX)}"
        written = plain if variable.startswith(BITNAMI_PREFIX) else variable
        is_foreign = _NOT_SETTINGS.fullmatch(written) or _OF_A_SERVICE.fullmatch(variable)
        is_address = value.startswith("tcp://")
        if variable.startswith(PREFIX) and value.strip() and not is_foreign and not is_address:
            name = _name(written)
            found[_OTHER_NAMES.get(name, name)] = value
    yield from found.items()


def _name(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def unknown(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The names that no broker of Apache Kafka knows, each with the nearest that it does."""
    for name, near in _unknown_names(dict(found)):
        yield name if near is None else f"{name} (the nearest is {near})"


def _unknown_names(found: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    from kafkalite.config.check import nearest_to
    from kafkalite.config.protections import PROMISES
    from kafkalite.config.tables import base_name, broker_settings, removed_settings

    for name in found:
        if base_name(name) not in broker_settings() and name not in removed_settings():
            near = nearest_to(name)
            if near not in PROMISES:  # a protection that was meant must not be passed over
                yield name, near


# --- listeners ------------------------------------------------------------------------------------


def _complete_listeners(found: dict[str, str], environment: Mapping[str, str]) -> None:
    """Listeners as the images derive them: those that are advertised, on every address. A host
    that is left empty is told to each client as it has reached the broker."""
    _take_old_address(found, environment)
    advertised = _items(found.pop("advertised.listeners", ""))
    if advertised and "listeners" not in found:
        found["listeners"] = ",".join(_on_any_address(each) for each in advertised)
    elif "listeners" in found:
        found["listeners"] = ",".join(_items(found["listeners"]))
    told = [each for each in advertised if _part(each, "host")]
    if told:
        found["advertised.listeners"] = ",".join(told)


def _take_old_address(found: dict[str, str], environment: Mapping[str, str]) -> None:
    """Older images advertise a host and a port by variables of their own."""
    host = environment.get("KAFKA_ADVERTISED_HOST_NAME", "").strip()
    if host and "advertised.listeners" not in found:
        port = environment.get("KAFKA_ADVERTISED_PORT", "").strip() or LISTEN.rpartition(":")[2]
        found["advertised.listeners"] = f"PLAINTEXT://{host}:{port}"


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _part(listener: str, part: str) -> str:
    match = _LISTENER.fullmatch(listener)
    return match[part] if match else listener  # one that is none is refused where it is read


def _on_any_address(listener: str) -> str:
    match = _LISTENER.fullmatch(listener)
    return f"{match['name']}://{ANY_ADDRESS}:{match['port']}" if match else listener


# --- topics ---------------------------------------------------------------------------------------


def topics(environment: Mapping[str, str]) -> Iterator[str]:
    """Topics that are to be there, as `kafkalite serve` takes them, out of
    NAME:PARTITIONS:REPLICAS[:CLEANUP] in as many lines as somebody likes."""
    separator = environment.get(SEPARATOR) or ","
    for item in re.split(rf"{re.escape(separator)}|\n", environment.get(CREATE_TOPICS, "")):
        name, count, _, cleanup = (part.strip() for part in f"{item}:::".split(":", 4)[:4])
        if name:
            configs = f":cleanup.policy={cleanup}" if cleanup else ""
            yield f"{name}:{count}{configs}".rstrip(":")
