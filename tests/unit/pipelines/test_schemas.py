"""What a schema registry may answer, and what becomes of it: a schema, a reason, or the end."""

import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pytest

from kafkalite.pipelines.common import schemas
from kafkalite.pipelines.common.json_schema import misfit
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.pipelines.common.protobuf import reader
from kafkalite.pipelines.common.schemas import JSON, PROTOBUF, Schemas
from tests.compat.schema_registry import SchemaRegistry, schema_registry

RECORD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[SchemaRegistry]:
    monkeypatch.setattr(schemas, "PAUSE_S", 0)
    with schema_registry() as registry:
        yield registry


def _learned(where: str, *numbers: int, timeout_s: float = 5) -> tuple[Any, Any]:
    """Ids that are known, and why the others are not."""
    found = Schemas(where, timeout_s)
    for number in numbers:
        found._learn(number)
    return sorted(found._known), found._refused


def test_schemas_are_asked_for_once(registry: SchemaRegistry) -> None:
    registry.has(7, RECORD)
    assert _learned(registry.url, 7, 7, 8, 8) == ([7], {8: "unknown schema id 8"})
    assert registry.asked == {7: 1, 8: 1}


@pytest.mark.parametrize(
    ("schema", "more", "reason"),
    [
        ("syntax = …", {"schemaType": "PROTOBUF"}, "schema id 3 is PROTOBUF, not Avro"),
        ({"type": "object"}, {"schemaType": "JSON"}, "schema id 3 is JSON, not Avro"),
        ("string", {}, "schema id 3 is not an Avro record"),
        (["null", "string"], {}, "schema id 3 is not an Avro record"),
    ],
    ids=["protobuf", "json", "primitive", "union"],
)
def test_schemas_that_are_no_avro_record_are_refused_by_name(
    registry: SchemaRegistry, schema: Any, more: dict[str, Any], reason: str
) -> None:
    registry.has(3, schema, **more)
    assert _learned(registry.url, 3) == ([], {3: reason})


def test_schemas_of_json_come_with_what_they_refer_to_and_others_are_refused(
    registry: SchemaRegistry,
) -> None:
    city = registry.has_subject("city", 1, {"type": "string"}) | {"name": "city.json"}
    home = {"properties": {"at": {"$ref": "city.json"}}}
    homes = registry.has_subject("home", 1, home, references=[city]) | {"name": "home.json"}
    person = {"properties": {"home": {"$ref": "home.json"}}}
    registry.has(1, person, schemaType="JSON", references=[homes, city])
    registry.has(2, RECORD)
    registry.has(3, {"type": "nothing"}, schemaType="JSON")
    found = Schemas(registry.url, 5, JSON)
    for number in (1, 2, 3):
        found._learn(number)
    said = misfit(found._known)
    assert said(1, '{"home": {"at": "x"}}') is None
    assert said(1, '{"home": {"at": 5}}') == "$.home.at: 5 is not of type 'string'"
    assert found._refused[2] == "schema id 2 is AVRO, not JSON Schema"
    assert found._refused[3].startswith("schema id 3 is no JSON Schema: 'nothing' is not valid")


def test_schemas_come_with_what_they_refer_to(registry: SchemaRegistry) -> None:
    place = {"type": "record", "name": "b.Place", "fields": [{"name": "at", "type": "string"}]}
    to_place = registry.has_subject("places/b", 1, place)
    person = {
        "type": "record", "name": "Person", "namespace": "a",
        "fields": [{"name": "home", "type": "b.Place"}, {"name": "work", "type": "b.Place"}],
    }  # fmt: skip
    to_person = registry.has_subject("people", 4, person, references=[to_place])
    team = {
        "type": "record", "name": "Team", "namespace": "a",
        "fields": [{"name": "all", "type": {"type": "array", "items": "Person"}}],
    }  # fmt: skip
    registry.has(9, team, references=[to_person])
    found = Schemas(registry.url, 5)
    found._learn(9)
    schema = fastavro.parse_schema(json.loads(found._known[9]))
    value = {"all": [{"home": {"at": "x"}, "work": {"at": "y"}}]}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, value)
    written.seek(0)
    assert fastavro.schemaless_reader(written, schema, None) == value


def test_a_deleted_schema_is_still_referred_to(registry: SchemaRegistry) -> None:
    """A subject may be deleted with all that refers to it; records of both are there still."""
    home = {"type": "record", "name": "Home", "fields": [{"name": "at", "type": "string"}]}
    to_home = registry.has_subject("homes", 1, home)
    registry.deleted.add(("homes", 1))
    field = {"name": "home", "type": "Home"}
    registry.has(4, {"type": "record", "name": "P", "fields": [field]}, references=[to_home])
    assert _learned(registry.url, 4) == ([4], {})


def test_a_reference_that_leads_nowhere_is_told(registry: SchemaRegistry) -> None:
    gone = {"name": "X", "subject": "gone", "version": 1}
    registry.has(5, RECORD, references=[gone])
    field = {"name": "x", "type": "Nobody"}
    useless = registry.has_subject("useless", 1, RECORD)
    registry.has(6, {"type": "record", "name": "S", "fields": [field]}, references=[useless])
    assert _learned(registry.url, 5, 6) == (
        [],
        {
            5: "schema id 5 needs version 1 of subject gone, which is nowhere",
            6: "schema id 6 needs Nobody, which is nowhere",
        },
    )


def test_login_in_the_url_is_sent_and_never_shown(registry: SchemaRegistry) -> None:
    registry.has(1, RECORD)
    url = registry.url.replace("//", "//me:s%2Fcret@")
    assert _learned(url, 1) == ([1], {})
    assert registry.logins == ["Basic bWU6cy9jcmV0"]
    registry.trouble = lambda: (401, b'{"error_code":401,"message":"Unauthorized"}')
    with pytest.raises(PipelineError, match=r"schema id 1: HTTP 401, Unauthorized$") as error:
        _learned(url, 1)
    assert "cret" not in str(error.value)


def test_a_registry_that_stumbles_is_asked_again(registry: SchemaRegistry) -> None:
    registry.has(1, RECORD)
    troubles = [(503, b"later"), (429, b"too many")]
    registry.trouble = lambda: troubles.pop() if troubles else None
    assert _learned(registry.url, 1) == ([1], {})


@pytest.mark.parametrize("status", [500, 503])
def test_a_registry_that_is_broken_ends_the_run(registry: SchemaRegistry, status: int) -> None:
    registry.trouble = lambda: (status, b"<html>")
    with pytest.raises(PipelineError, match=f"did not answer in 3 attempts: HTTP {status}"):
        _learned(registry.url, 1)
    assert len(registry.logins) == 3


def test_a_registry_that_is_silent_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "PAUSE_S", 0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(PipelineError, match=r"did not answer in 3 attempts: .*timed out"):
            _learned(url, 1, timeout_s=0.05)


def test_a_registry_that_hangs_up_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "PAUSE_S", 0)
    with socket.create_server(("127.0.0.1", 0)) as rude:
        hung_up = threading.Thread(
            target=_hang_up, args=(rude, schemas.ATTEMPTS), daemon=True
        )
        hung_up.start()
        url = f"http://127.0.0.1:{rude.getsockname()[1]}"
        with pytest.raises(PipelineError, match="did not answer in 3 attempts"):
            _learned(url, 1)
        hung_up.join()


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_that_never_ends_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(schemas, "PAUSE_S", 0)
    head = f"HTTP/1.1 {status} X\r\nContent-Length: 1000\r\n\r\n".encode()
    with socket.create_server(("127.0.0.1", 0)) as slow:
        dripping = threading.Thread(
            target=_drip, args=(slow, head, schemas.ATTEMPTS), daemon=True
        )
        dripping.start()
        url = f"http://127.0.0.1:{slow.getsockname()[1]}"
        with pytest.raises(PipelineError, match="in 3 attempts: it took longer than"):
            _learned(url, 1, timeout_s=0.2)
        dripping.join()


def _drip(server: socket.socket, head: bytes, times: int) -> None:
    """For two seconds, which is much longer than it is waited for."""
    for _ in range(times):
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.recv(4096)
            connection.sendall(head)
            for _ in range(40):
                connection.sendall(b" ")
                time.sleep(0.05)


def test_a_login_is_for_the_registry_alone(registry: SchemaRegistry) -> None:
    registry.has(7, RECORD)
    there = f"Location: {registry.url}/schemas/ids/7"
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        sending = threading.Thread(target=_send_away, args=(elsewhere, there), daemon=True)
        sending.start()
        url = f"http://user:secret@127.0.0.1:{elsewhere.getsockname()[1]}"
        assert _learned(url, 7)[0] == [7]
        sending.join()
    assert registry.logins == [None]


def test_an_answer_that_is_cut_off_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "PAUSE_S", 0)
    with socket.create_server(("127.0.0.1", 0)) as rude:
        cutting = threading.Thread(
            target=_cut_off, args=(rude, schemas.ATTEMPTS), daemon=True
        )
        cutting.start()
        url = f"http://127.0.0.1:{rude.getsockname()[1]}"
        with pytest.raises(PipelineError, match=r"in 3 attempts: .*cut off"):
            _learned(url, 1)
        cutting.join()


def _cut_off(server: socket.socket, times: int) -> None:
    for _ in range(times):
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"schema": "')


def _send_away(server: socket.socket, there: str) -> None:
    connection, _ = server.accept()
    with connection:
        assert b"Authorization: Basic" in connection.recv(4096)
        head = f"HTTP/1.1 302 Found\r\n{there}\r\nContent-Length: 0\r\n\r\n"
        connection.sendall(head.encode())


def _hang_up(server: socket.socket, times: int) -> None:
    for _ in range(times):
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)


def test_nobody_listening_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "PAUSE_S", 0)
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    with pytest.raises(PipelineError, match=r"did not answer in 3 attempts: .*refused"):
        _learned(url, 1)


@pytest.mark.parametrize(
    "body",
    [b"<html>hello</html>", b"[]", b"{}", b'{"schema": 5}', b'{"schema": "{"}', b"\xff"],
    ids=["page", "list", "empty", "number", "cut", "bytes"],
)
def test_an_answer_that_is_no_schema_ends_the_run(registry: SchemaRegistry, body: bytes) -> None:
    registry.trouble = lambda: (200, body)
    with pytest.raises(PipelineError, match="something else: is it a schema registry"):
        _learned(registry.url, 1)


def test_a_wrong_path_is_not_taken_for_an_unknown_schema(registry: SchemaRegistry) -> None:
    """Every record would be called undecodable for a slip in the URL."""
    registry.has(1, RECORD)
    with pytest.raises(PipelineError, match=r"refused schema id 1: HTTP 404"):
        _learned(f"{registry.url}/api", 1)


def test_folders_of_schemas(tmp_path: Path) -> None:
    (tmp_path / "1.avsc").write_text('{"type": "record", "name": "R", "fields": []}')
    assert _learned(str(tmp_path), 1, 2) == ([1], {2: "unknown schema id 2"})
    (tmp_path / "3.avsc").write_text("{")
    with pytest.raises(PipelineError, match=r"3\.avsc is not JSON"):
        _learned(str(tmp_path), 3)


def test_protobuf_schemas_and_those_that_they_import(
    registry: SchemaRegistry, tmp_path: Path
) -> None:
    """An import may itself import one; what is no schema is told in its compiler's words."""
    one = 'syntax = "proto3"; import "two.proto"; message One { Two two = 1; }'
    two = 'syntax = "proto3"; import "three.proto"; message Two { Three three = 1; }'
    three = 'syntax = "proto3"; message Three { bool is_it = 1; }'
    third = {"name": "three.proto", "subject": "three", "version": 1}
    for name, text, more in (("two", two, [third]), ("three", three, [])):
        answer = {"schema": text, "schemaType": "PROTOBUF", "references": more}
        registry.subjects[name, 1] = answer
    asked = {"name": "two.proto", "subject": "two", "version": 1}
    registry.answers[1] = {"schema": one, "schemaType": "PROTOBUF", "references": [asked]}
    registry.answers[2] = {"schema": one, "schemaType": "PROTOBUF"}
    registry.has(3, RECORD)
    gone = {"name": "two.proto", "subject": "gone", "version": 4}
    registry.answers[4] = {"schema": one, "schemaType": "PROTOBUF", "references": [gone]}
    found = Schemas(registry.url, 5, PROTOBUF)
    for number in (1, 2, 3, 4):
        found._learn(number)
    assert sorted(found._known) == [1]
    said, fault = reader(found._known)(1, b"\x00\x0a\x04\x0a\x02\x08\x01")
    assert (said, fault) == ('{"two": {"three": {"is_it": true}}}', None)
    told = "schema id 2 is no Protobuf schema: two.proto: File not found."
    assert found._refused[2].startswith(told)
    assert found._refused[3] == "schema id 3 is AVRO, not Protobuf"
    assert found._refused[4] == "schema id 4 needs version 4 of subject gone, which is nowhere"
    (tmp_path / "5.proto").write_text(three)
    here = Schemas(str(tmp_path), 5, PROTOBUF)
    here._learn(5)
    assert reader(here._known)(5, b"\x00") == ('{"is_it": false}', None)


@pytest.mark.parametrize("where", ["", "/no/such/folder"])
def test_no_place_for_schemas_is_told_at_once(where: str) -> None:
    with pytest.raises(ValueError, match=r"needs a schema registry|no folder of schemas"):
        Schemas(where)
