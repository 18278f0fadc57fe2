"""`kafkalite dump`: what captured frames, log files and message layouts hold, readably."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import click

from kafkalite.cli import _frames, _layouts, _log_files
from kafkalite.client.internal_records import TOPICS
from kafkalite.client.rendering import Plain, as_json, as_text
from kafkalite.protocol.errors import KafkaError, MalformedFrame
from kafkalite.protocol.spec import Api

shape_option = click.option(
    "--format", "shape", type=click.Choice(["text", "json"]), default="text", help="How to print."
)


@click.group()
def command() -> None:
    """Print frames, log files and message layouts readably."""


@command.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--response", "api", metavar="API", help="These are responses of API (name or key).")
@click.option("--version", type=int, help="The version of the responses.")
@shape_option
def frame(file: BinaryIO, api: str | None, version: int | None, shape: str) -> None:
    """Print the requests in FILE (- is standard input), bytes or hexadecimal.

    Sizes before the frames are seen by themselves. Responses do not say what they are:

        kafkalite dump frame --response Metadata --version 12 captured.bin
    """
    found = _api(api, version)
    try:
        frames = list(_frames.split(_frames.read_capture(file.read())))
        _print(_described(frames, found, version), shape)
    except (MalformedFrame, ValueError, KeyError) as reason:
        raise click.ClickException(f"not a frame: {reason}") from None


@command.command()
@click.argument("files", nargs=-1, required=True,
                type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--deep/--headers", default=True, help="Print records, or batch headers only.")
@click.option("--as", "topic", type=click.Choice(TOPICS), help="Decode records as this topic's.")
@shape_option
def segment(files: tuple[Path, ...], deep: bool, topic: str | None, shape: str) -> None:
    """Print FILES of a log directory: .log, .index, .timeindex, .txnindex, .snapshot, checkpoints.

    The records of internal topics are decoded; the name of the folder tells which topic it is.
    """
    for path in files:
        if len(files) > 1:
            click.echo(f"# {path}")
        try:
            _print(_log_files.describe_file(path, deep=deep, topic=topic), shape)
        except (OSError, ValueError, KafkaError, struct.error) as reason:
            raise click.ClickException(f"{path} is no file of a log directory: {reason}") from None


@command.command()
@click.argument("name")
@click.option("--version", type=int, help="Only the fields of this version.")
def spec(name: str, version: int | None) -> None:
    """Print the layout of NAME: an API (by name or key), or any message or record."""
    messages = _layouts.find(name)
    if not messages:
        raise click.ClickException(f"no API, message or record is called {name}")
    for message in messages:
        if version is not None and version not in message.versions:
            raise click.ClickException(f"{message.name} has no version {version}")
        click.echo("\n".join(_layouts.describe(message, version)))


def _api(word: str | None, version: int | None) -> Api | None:
    """Whose answers the frames are, None when they are requests."""
    if word is None:
        return None
    if version is None:
        raise click.UsageError("--response needs --version")
    found = _layouts.find_api(word)
    if found is None:
        raise click.BadParameter(f"no API is called {word}", param_hint="--response")
    if version not in found.versions:
        raise click.BadParameter(f"{found.name} has no version {version}", param_hint="--version")
    return found


def _described(frames: list[bytes], api: Api | None, version: int | None) -> list[Plain]:
    if api is None or version is None:
        return [_frames.describe_request(each) for each in frames]
    return [_frames.describe_response(each, api, version) for each in frames]


def _print(values: Iterable[Plain], shape: str) -> None:
    """Each value when it is known, so that a long file prints from its start."""
    for value in values:
        if shape == "json":
            click.echo(as_json(value))
        else:
            click.echo(value if isinstance(value, str) else as_text([value]))
