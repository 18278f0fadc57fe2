"""`python -m kafkalite.jvm`: what make and shell scripts ask of the Java side."""

import sys

import click

from kafkalite.jvm import jars, java


@click.group()
def main() -> None:
    """Java and the pinned jars."""


@main.command("java")
def java_command() -> None:
    """Print the Java that is used; fail with advice if there is none."""
    click.echo(java.find())


@main.command()
@click.argument("groups", nargs=-1)
def fetch(groups: tuple[str, ...]) -> None:
    """Fetch the jars of GROUPS, or of all groups but archives."""
    paths = jars.paths(*(groups or jars.class_path_groups()))
    click.echo(f"{len(paths)} jars in {jars.cache_folder()}")


@main.command("class-path")
@click.argument("groups", nargs=-1, required=True)
def class_path(groups: tuple[str, ...]) -> None:
    """Print the class path of GROUPS."""
    click.echo(jars.class_path(*groups))


@main.command()
def groups() -> None:
    """List the groups."""
    for name, members in jars.table().items():
        click.echo(f"{name}\t{len(members)} jars")


@main.command()
def verify() -> None:
    """Compare the cached jars with their checksums."""
    wrong = jars.damaged()
    for path in wrong:
        click.echo(f"{path}: SHA-256 differs; remove it and fetch again", err=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    try:
        main()
    except (jars.JarsMissing, java.JavaMissing) as missing:
        sys.exit(str(missing))
