"""The command group: it lists every command, and loads only the one that runs."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import kafkalite
from kafkalite.cli.main import _short, main


def test_version() -> None:
    said = CliRunner().invoke(main, ["--version"])
    assert said.output == f"kafkalite, version {kafkalite.__version__}\n"


def test_help_lists_commands_and_no_helpers() -> None:
    said = CliRunner().invoke(main, ["--help"]).output
    assert "dump" in said
    assert "_rendering" not in said


def test_help_says_what_commands_say_and_loads_none() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        assert _short(name) == command.get_short_help_str(), name
    program = (
        "import sys; from kafkalite.cli.main import main; main(['--help'], standalone_mode=False);"
        "print([name for name in sys.modules if name.startswith('kafkalite.cli.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.splitlines()[-1] == "['kafkalite.cli.main']"


def test_commands_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_KAFKALITE_COMPLETE", "bash_complete")
    for words, number, said in (
        ("kafkalite to", "1", "plain,top\nplain,topic\n"),
        ("kafkalite --v", "1", "plain,--version\n"),
        ("kafkalite topic st", "2", "plain,stat\n"),
        ("kafkalite consume --exit", "2", "plain,--exit-idle\n"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", number)
        assert CliRunner().invoke(main, [], prog_name="kafkalite").output == said


def test_unknown_command_is_refused() -> None:
    said = CliRunner().invoke(main, ["no-such-command"])
    assert said.exit_code == 2
    assert "No such command" in said.output


def test_starting_loads_no_command() -> None:
    program = "import sys, kafkalite.cli.main; print([m for m in sys.modules if 'kafkalite' in m])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "['kafkalite', 'kafkalite.cli', 'kafkalite.cli.main']"
