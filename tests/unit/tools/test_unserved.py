"""A broker that does not serve what a tool asks: the tool says so at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.tools.running import main

DIRECTORY_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def test_it_is_said_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # Should it be asked again, then until this is over, and something else is said.
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=500\nrequest.timeout.ms=500\n")
    with EmbeddedKafka(profile="kafka-3.8") as kafka:
        assert main([
            "kafka-metadata-quorum", "--bootstrap-server", kafka.bootstrap_servers,
            "--command-config", str(config), "remove-controller", "--controller-id", "7",
            "--controller-directory-id", DIRECTORY_ID,
        ]) == 1  # fmt: skip
    why = "The node does not support REMOVE_RAFT_VOTER"
    exception = f"org.apache.kafka.common.errors.UnsupportedVersionException: {why}\n"
    java = f"java.util.concurrent.ExecutionException: {exception}"
    assert capsys.readouterr().err == f"{exception}{java}Caused by: {exception}\n"
