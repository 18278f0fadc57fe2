"""The command group: it lists every command, and loads only the one that runs."""

import subprocess
import sys

from click.testing import CliRunner

import kafkalite
from kafkalite.cli.main import main


def test_version() -> None:
    said = CliRunner().invoke(main, ["--version"])
    assert said.output == f"kafkalite, version {kafkalite.__version__}\n"


def test_help_lists_commands_and_no_helpers() -> None:
    said = CliRunner().invoke(main, ["--help"]).output
    assert "dump" in said
    assert "_rendering" not in said


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
