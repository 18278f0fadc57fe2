"""What is the matter with a JSON value, by its JSON Schema."""

import json
from typing import Any

import pytest

from kafkalite.pipelines.common.json_schema import LONGEST, bundle, fault_of_schema, misfit

ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "to": {"$ref": "address.json"}},
    "required": ["id"],
}
ADDRESS = {"type": "object", "properties": {"city": {"$ref": "city.json#/$defs/name"}}}
CITY = {"$defs": {"name": {"type": "string"}}}
OTHERS = {"address.json": ADDRESS, "city.json": CITY}


def told(schema: Any, value: Any, others: dict[str, Any] | None = None) -> str | None:
    text = value if isinstance(value, str) else json.dumps(value)
    return misfit({7: bundle(schema, others or {})})(7, text)


def test_a_value_of_its_schema_is_no_misfit() -> None:
    assert told(ORDER, {"id": 1, "to": {"city": "x"}}, OTHERS) is None
    assert told(True, 1) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "$: 'id' is a required property"),
        ({"id": "1"}, "$.id: '1' is not of type 'integer'"),
        ({"id": 1, "to": {"city": 2}}, "$.to.city: 2 is not of type 'string'"),
        ([], "$: [] is not of type 'object'"),
    ],
)
def test_a_misfit_says_where_and_why(value: Any, said: str) -> None:
    assert told(ORDER, value, OTHERS) == said


def test_what_is_nowhere_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    import urllib.request

    monkeypatch.setattr(urllib.request, "urlopen", lambda *given: pytest.fail("it was fetched"))
    schema = {"$ref": "http://127.0.0.1:1/order.json"}
    assert told(schema, {}) == "its schema needs http://127.0.0.1:1/order.json, which is nowhere"


def test_a_value_or_a_schema_that_never_ends_is_a_misfit() -> None:
    assert "recursion" in str(told(True, "[" * 100_000 + "]" * 100_000)).lower()
    assert "recursion" in str(told({"$ref": "#"}, 1)).lower()


def test_a_long_fault_says_that_it_is_cut() -> None:
    said = told({"type": "integer"}, json.dumps("x" * 1_000)) or ""
    assert len(said) == LONGEST + 1
    assert said.endswith("…")


def test_other_rows_are_nobodys_misfit() -> None:
    said = misfit({7: bundle(False, {})})
    assert (said(None, "1"), said(8, "1"), said(7, None)) == (None, None, None)
    assert said(7, "1") == "$: False schema does not allow 1"


@pytest.mark.parametrize("text", ["{", '{"type": "nothing"}', "[]"])
def test_what_is_no_schema_is_told(text: str) -> None:
    assert fault_of_schema(text)
    assert fault_of_schema(json.dumps(ORDER)) is None
