"""The flag that lets scenario texts be rewritten."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-scenarios", action="store_true", default=False)
