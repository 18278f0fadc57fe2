"""What docs/security.md shows works as it stands there, with keys that `kafkalite certs` made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.config import broker_config
from kafkalite.config.properties import parse_properties
from kafkalite.security.login_settings import login_settings
from tests.unit.testing.test_plugin import run_suite

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
SETTINGS = dict(re.findall(r"```properties (\w+)\n(.*?)```", PAGE, re.DOTALL))
BLOCKS = dict(re.findall(r"```python (\w+)\n(.*?)```", PAGE, re.DOTALL))
SUITES = {name: text for name, text in BLOCKS.items() if "def test_" in text}
PROGRAM_S = 60


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(main, ["certs", "keys", "--host", "kafka.test"])
    assert made.exit_code == 0, made.output
    return tmp_path


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_of_the_page_are_honoured(folder: Path, name: str) -> None:
    assert len(parse_properties(SETTINGS[name])) > 5
    (folder / "server.properties").write_text(SETTINGS[name])
    said = CliRunner().invoke(main, ["config", "check", "server.properties"])
    assert said.exit_code == 0, said.output
    assert "0 ignored, 0 refused" in said.output


@pytest.mark.parametrize("name", sorted(BLOCKS.keys() - SUITES))
def test_the_programs_of_the_page_run(folder: Path, name: str) -> None:
    call = [sys.executable, "-c", BLOCKS[name]]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=PROGRAM_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", SUITES)
def test_the_suites_of_the_page_pass(tmp_path: Path, name: str) -> None:
    said = run_suite(tmp_path, SUITES[name])
    assert "1 passed" in said, said


def test_the_logins_of_the_page_are_taken() -> None:
    part = PAGE.partition("## Logins (SASL)")[2]
    [text] = re.findall(r"```properties\n(listeners=SASL_PLAINTEXT.*?)```", part, re.DOTALL)
    config, ignored = broker_config(parse_properties(text))
    assert ignored == []
    found = login_settings(config)["SASL_PLAINTEXT"]
    assert found.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert found.plain_users == {"alice": "alice-secret", "bob": "bob-secret"}
