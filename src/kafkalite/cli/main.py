"""The `kafkalite` command: a group that loads each command when it is asked for.

Adding a command is adding a file: module `topic.py` here, with a click command (or group) named
`command` in it, is `kafkalite topic`. A module whose name begins with an underscore is a helper.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import click

import kafkalite
from kafkalite import cli

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MARGIN = 6  # of click, around the names of commands
_HELP = re.compile(r'^def command\(.*?\n    """(.*?)"""', re.DOTALL | re.MULTILINE)


class LazyGroup(click.Group):
    """A group whose commands are the modules of `kafkalite.cli`."""

    def main(self, *args: Any, **options: Any) -> Any:
        from kafkalite.tools.streams import take_up

        take_up()
        return super().main(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """What the system refuses and no command knows better is one sentence, too."""
        from kafkalite.cli._streams import leave_output

        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # click knows what that means
        except OSError as error:
            leave_output()
            raise click.ClickException(str(error)) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_command_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module_name = _command_modules().get(cmd_name)
        if module_name is None:
            return None
        command = import_module(f"kafkalite.cli.{module_name}").command
        assert isinstance(command, click.Command), f"cli/{module_name}.py: no click command"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Without loading them."""
        names = self.list_commands(ctx)
        width = formatter.width - _MARGIN - max(map(len, names))
        rows = [(name, _short(name, width)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=_short(name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(kafkalite.__version__, prog_name="kafkalite")
def main() -> None:
    """A broker that speaks the Apache Kafka protocol."""


def _command_modules() -> dict[str, str]:
    """Each command's name and the module it is in."""
    names = [module.name for module in iter_modules(cli.__path__)]
    commands = (name for name in names if name != "main" and not name.startswith("_"))
    return {name.replace("_", "-"): name for name in commands}


def _short(name: str, limit: int = 45) -> str:
    """What a command says of itself in a sentence, as it stands in its module."""
    [folder] = cli.__path__
    path = Path(folder, f"{_command_modules()[name]}.py")
    found = _HELP.search(path.read_text(encoding="utf-8")) if path.exists() else None
    return click.Command(name, help=found[1] if found else "").get_short_help_str(limit)
