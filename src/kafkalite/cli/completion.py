"""`kafkalite completion`: what a shell needs to complete its words."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "kafkalite", "_KAFKALITE_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a script that has a shell complete commands, options, profiles and topics.

    \b
        eval "$(kafkalite completion bash)"     # in ~/.bashrc
        eval "$(kafkalite completion zsh)"      # in ~/.zshrc
        kafkalite completion fish | source      # in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    root = click.get_current_context().find_root().command
    script = kind(root, {}, PROGRAM, VARIABLE)
    click.echo(script.source_template % script.source_vars())
