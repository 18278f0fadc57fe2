"""What docs/security.md shows of logins starts, and lets in whom it names."""

import re
from pathlib import Path

import pytest

from kafkalite.config import broker_config, parse_properties
from kafkalite.security.login_settings import login_settings
from tests.unit.testing.test_plugin import run_suite

PAGE = Path(__file__).parents[3] / "docs" / "security.md"


BLOCKS = dict(re.findall(r"```python (\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.mark.parametrize("name", BLOCKS)
def test_the_page_works(tmp_path: Path, name: str) -> None:
    said = run_suite(tmp_path, BLOCKS[name])
    assert "1 passed" in said, said


def test_the_logins_of_the_page_are_taken():
    part = PAGE.read_text().partition("## Logins (SASL)")[2]
    [text] = re.findall(r"```properties\n(listeners=SASL_PLAINTEXT.*?)```", part, re.DOTALL)
    config, ignored = broker_config(parse_properties(text))
    assert ignored == []
    found = login_settings(config)["SASL_PLAINTEXT"]
    assert found.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert found.plain_users == {"alice": "alice-secret", "bob": "bob-secret"}
