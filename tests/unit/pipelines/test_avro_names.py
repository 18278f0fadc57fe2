"""Schemas made whole: each type defined once, where it is named first, and meaning the same."""

from typing import Any

import pytest

from kafkalite.pipelines.common.avro_names import UnknownName, whole


def record(name: str, *types: Any, **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{index}", "type": each} for index, each in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


def types(schema: dict[str, Any]) -> list[Any]:
    return [field["type"] for field in schema["fields"]]


def test_a_type_is_defined_where_it_is_named_first_and_then_named() -> None:
    found = whole(record("R", "a.E", ["null", "a.E"]), [{"type": "enum", "name": "a.E"}])
    first, second = types(found)
    assert first == {"type": "enum", "name": "E", "namespace": "a"}
    assert second == ["null", "a.E"]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda name: {"type": "array", "items": name},
        lambda name: {"type": "map", "values": name},
        lambda name: {"type": name},
        lambda name: ["null", name],
        lambda name: record("Inner", name, namespace="a"),
    ],
    ids=["array", "map", "type", "union", "record"],
)
def test_names_are_found_wherever_they_stand(wrap: Any) -> None:
    found = whole(record("a.R", wrap("a.E")), [{"type": "enum", "name": "E", "namespace": "a"}])
    assert "'type': 'enum'" in str(found)


def test_names_in_what_is_placed_mean_what_they_meant() -> None:
    inner = {"type": "fixed", "name": "F", "size": 2}
    other = record("Other", inner, "F", namespace="b")
    (placed,) = types(whole(record("R", "b.Other", namespace="a"), [other]))
    assert (placed["name"], placed["namespace"]) == ("Other", "b")
    assert types(placed) == [inner | {"namespace": "b"}, "b.F"]


def test_a_type_within_another_can_be_named_alone() -> None:
    inner = {"type": "fixed", "name": "F", "size": 2}
    other = record("Other", inner, namespace="b")
    first, second = types(whole(record("R", "b.F", "b.Other"), [other]))
    assert first == inner | {"namespace": "b"}
    assert types(second) == ["b.F"]


def test_a_record_may_name_itself_and_a_logical_type_stays() -> None:
    day = {"type": "int", "logicalType": "date"}
    node = record("Node", ["null", "Node"], day)
    assert types(whole(node, []))[1] == day
    assert types(whole(node, []))[0] == ["null", "Node"]


def test_what_nobody_defines_is_named() -> None:
    with pytest.raises(UnknownName, match=r"^a\.Nobody$"):
        whole(record("R", "Nobody", namespace="a"), [])
