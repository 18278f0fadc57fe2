"""What docs/security.md shows of logins starts, and lets in whom it names."""

import re
from pathlib import Path

from kafkalite.config import broker_config, parse_properties
from kafkalite.security.login_settings import login_settings

PAGE = Path(__file__).parents[3] / "docs" / "security.md"


def test_the_logins_of_the_page_are_taken():
    part = PAGE.read_text().partition("## Logins (SASL)")[2]
    [text] = re.findall(r"```properties\n(listeners=SASL_PLAINTEXT.*?)```", part, re.DOTALL)
    config, ignored = broker_config(parse_properties(text))
    assert ignored == []
    found = login_settings(config)["SASL_PLAINTEXT"]
    assert found.mechanisms == ("PLAIN", "SCRAM-SHA-512")
    assert found.plain_users == {"alice": "alice-secret", "bob": "bob-secret"}
