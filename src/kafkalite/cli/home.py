"""`kafkalite home`: a folder that looks like an unpacked Apache Kafka, for who wants one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kafkalite.cli import _home_files
from kafkalite.tools.table import MODULES

EXECUTABLE = 0o755


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def command(folder: Path) -> None:
    """Write bin/kafka-*.sh and config/ into DIR.

    The scripts are written anew each time; config files that are there are kept.
    """
    folder = folder.absolute()
    names = _write_scripts(folder / "bin")
    _write_configs(folder / "config", folder / "data")
    click.echo(f"{folder}/bin: {', '.join(f'{name}.sh' for name in names)}, and without .sh")
    start = f"{folder}/bin/{_home_files.START}.sh"
    click.echo(f"  try     {start} -daemon {folder}/config/server.properties")
    click.echo(f"          {folder}/bin/kafka-topics.sh --bootstrap-server localhost:9092 --list")


def _write_scripts(folder: Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, text in _home_files.scripts(sys.executable, list(MODULES)):
        for path in (folder / name, folder / f"{name}.sh"):
            path.write_text(text, encoding="utf-8")
            path.chmod(EXECUTABLE)
        names.append(name)
    return names


def _write_configs(folder: Path, data: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _home_files.configs(str(data)).items():
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")
