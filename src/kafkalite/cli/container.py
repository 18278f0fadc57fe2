"""`kafkalite container`: what the image runs. Settings come from KAFKA_… variables of the
environment, spelled as the images of Apache Kafka, Confluent and Bitnami spell them, above those
of a mounted server.properties.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import click

from kafkalite.cli._properties import broker_config
from kafkalite.cli._properties_file import PropertiesFile
from kafkalite.config import InvalidSetting
from kafkalite.container.clusters import name_cluster
from kafkalite.container.directories import MOUNTS, mounted
from kafkalite.container.prepared import Prepared, cluster_id, prepare
from kafkalite.container.properties import properties_text
from kafkalite.container.variables import with_files_read, with_secrets_read
from kafkalite.security.login_file import named_in

# Where users of other images mount settings; the first that is there counts.
SHARED_FILES = ("/mnt/shared/config/server.properties", "/bitnami/kafka/config/server.properties")
_DIRECTORY = {"log.dir": "log.dirs"}


@click.command(
    hidden=True, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--configure", metavar="FILE", help="Write the settings to FILE, and end.")
@click.option("--configured", metavar="FILE", help="Take the settings from FILE, if it is there.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(
    context: click.Context,
    configure: str | None,
    configured: str | None,
    arguments: tuple[str, ...],
) -> None:
    """Serve with the settings that the environment names; ARGUMENTS go to `kafkalite serve`."""
    from kafkalite.cli.main import main

    try:
        environment = with_secrets_read(with_files_read(os.environ, _text_of), _text_of)
        if configured is not None and os.path.exists(configured):
            written = PropertiesFile().convert(configured, None, context)
            prepared = prepare({}, written, (), {"listeners", "log.dirs"})
            prepared.topics = prepare(environment, {}, (), {"listeners", "log.dirs"}).topics
        else:
            prepared = prepare(environment, _shared(context), _mounts(), given(arguments))
            for note in prepared.notes:
                click.echo(note, err=True)
        if configure is not None:
            _write(configure, prepared)
            return
        directories = prepared.settings.get("log.dirs") or prepared.settings.get("log.dir", "")
        name_cluster(directories, cluster_id(environment))
    except InvalidSetting as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        told = f"{error.filename} cannot be written ({error.strerror})"
        cure = "it has to belong to the container's user, or name another one in KAFKA_LOG_DIRS"
        raise click.ClickException(f"{told}: {cure}") from None
    logins = login_arguments(os.environ)
    call = ["serve", *serve_arguments(prepared), *logins, *arguments]
    main.main(call, "kafkalite", parent=context.parent)


def given(arguments: Sequence[str]) -> set[str]:
    """What the arguments of `kafkalite serve` say themselves: `listeners`, `log.dirs`, or both."""
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


def login_arguments(environment: Mapping[str, str]) -> list[str]:
    """Of the JAAS file that a JVM would be told of."""
    file = named_in(environment.get("KAFKA_OPTS", ""))
    return [] if file is None else ["--login-file", file]


def serve_arguments(prepared: Prepared) -> list[str]:
    """The options of `kafkalite serve` that stand for it."""
    call: list[str] = []
    for name, value in sorted(prepared.settings.items()):
        call += ["--override", f"{name}={value}"]
    for topic in prepared.topics:
        call += ["--topic", topic]
    return call


def _shared(context: click.Context) -> dict[str, str]:
    path = next(filter(os.path.exists, SHARED_FILES), None)
    return {} if path is None else PropertiesFile().convert(path, None, context)


def _mounts() -> set[str]:
    try:
        return mounted(_text_of(MOUNTS))
    except OSError:  # not every system has such a table
        return set()


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, prepared: Prepared) -> None:
    """Once it is known that a broker would start with it."""
    login_file = named_in(os.environ.get("KAFKA_OPTS", ""))
    broker_config(prepared.settings, None, None, False, (), login_file)
    with open(path, "w", encoding="utf-8") as file:
        file.write(properties_text(prepared.settings))
