"""`kafkalite config check`: what becomes of each key of a file."""

import json

from click.testing import CliRunner

from kafkalite.cli.config import command


def check(text, *options):
    return CliRunner().invoke(command, ["check", "-", *options], input=text)


def test_a_line_for_each_key_and_a_count():
    result = check("num.partitions=3\nnum.io.threads=8\n")
    assert result.exit_code == 0
    assert "honoured  num.partitions=3" in result.output
    assert "ignored   num.io.threads=8  (one event loop" in result.output
    assert result.output.endswith("1 honoured, 1 ignored, 0 refused\n")


def test_a_refused_key_is_a_failure():
    result = check("num.partition=3\n")
    assert result.exit_code == 1
    assert "refused   num.partition=3  (no such setting; the nearest is num.partitions)" in (
        result.output
    )


def test_rules_over_several_keys_are_looked_at_too():
    result = check("listeners=PLAINTEXT://:1\nadvertised.listeners=SSL://h:2\n")
    assert result.exit_code == 1
    assert "listeners does not open" in result.output


def test_json():
    result = check("num.partitions=3\nssl.key.password=secret\n", "--format", "json")
    rows = {row["key"]: row for row in json.loads(result.output)}
    assert rows["num.partitions"]["verdict"] == "honoured"
    assert rows["ssl.key.password"]["value"] == "[hidden]"


def test_a_file_that_is_no_properties_file():
    result = check("a=\\u00g0\n")
    assert result.exit_code == 1
    assert "line 1" in result.output
