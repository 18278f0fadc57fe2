"""The grammar of the spec files, and that all of them can be read."""

from __future__ import annotations

import pytest

from kafkalite.protocol import files, spec
from tests.unit.protocol.random_messages import every_message

HEAD = "api Thing key=7 versions=0-4 flexible=2+\nrequest\n"


def request(fields: str) -> spec.Message:
    return spec.parse(HEAD + fields, "07_thing.spec").messages["ThingRequest"]


def test_a_field_line_says_everything_of_a_field() -> None:
    [field] = request("    name: string?3+ = null  @2-3 tag 5@3+   # a remark\n").root.fields
    assert (field.name, field.type, field.default) == ("name", "string", "null")
    assert list(field.versions) == [2, 3]
    assert list(field.nullable) == [3]
    assert (field.tag, list(field.tagged)) == (5, [3])
    assert field.can_be_null
    assert not field.is_array


def test_a_field_says_what_kind_of_thing_it_names() -> None:
    plain, named, several, old = request(
        "    a: string @2+\n    b: string? topic = null @1+\n    c: [int32]? broker\n"
        "    d: string inflexible group @0-1\n"
    ).root.fields
    assert [field.resource for field in (plain, named, several, old)] == [
        None,
        "topic",
        "broker",
        "group",
    ]
    assert (named.default, list(named.versions), old.is_inflexible) == ("null", [1, 2, 3, 4], True)


def test_versions_are_those_of_the_message_where_none_are_given() -> None:
    always, since, once = request("    a: int8\n    b: int8 @3+\n    c: int8 @1\n").root.fields
    assert [list(field.versions) for field in (always, since, once)] == [
        [0, 1, 2, 3, 4],
        [3, 4],
        [1],
    ]


def test_a_struct_is_named_once_and_used_again() -> None:
    message = request(
        "    topics: [Topic]\n        name: string\n    other: Topic?  @4+\n    last: int8\n"
    )
    topics, other, last = message.root.fields
    assert topics.struct is other.struct is message.structs["Topic"]
    assert topics.is_array
    assert not other.is_array
    assert last.struct is None


def test_blocks_close_where_the_indentation_falls() -> None:
    message = request(
        "    a: [A]\n        b: [B]\n            c: int8\n        d: int8\n    e: int8\n"
    )
    names = {name: [f.name for f in struct.fields] for name, struct in message.structs.items()}
    assert names == {"A": ["b", "d"], "B": ["c"]}
    assert [field.name for field in message.root.fields] == ["a", "e"]


def test_the_head_of_an_api() -> None:
    api = spec.parse(
        "# What it does.\napi Thing key=7 versions=0-4 flexible=2+ listeners=broker,controller"
        " dropped=0-1 unstable=4 response_header=0\nrequest\nresponse\n",
        "07_thing.spec",
    ).api
    assert api is not None
    assert (api.key, api.name, api.listeners) == (7, "Thing", ("broker", "controller"))
    assert (list(api.flexible), list(api.stable)) == ([2, 3, 4], [2, 3])
    assert api.response_header == 0


def test_an_api_that_is_never_flexible_and_always_stable() -> None:
    api = spec.parse("api Thing key=7 versions=1-3 flexible=none\n", "07_thing.spec").api
    assert api is not None
    assert list(api.flexible) == []
    assert list(api.stable) == [1, 2, 3]


def test_messages_that_are_not_of_an_api() -> None:
    messages = spec.parse(
        "# A key.\nmessage ThingKey type=3 versions=0-0 flexible=none\n    id: uuid\n\n"
        "message ThingValue type=3 versions=0-1 flexible=1+\n    error: error\n",
        "thing.spec",
    ).messages
    assert list(messages) == ["ThingKey", "ThingValue"]
    assert messages["ThingKey"].doc == "A key."
    assert (messages["ThingValue"].type, list(messages["ThingValue"].flexible)) == (3, [1])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (HEAD + "    name string\n", ":3:5: expected 'name: type'"),
        (HEAD + "    name: strin\n", ":3:11: unknown type strin"),
        (HEAD + "    name: string @2-\n", ":3:20: unexpected '-'"),
        (HEAD + "    name: string tga 3\n", ":3:18: unexpected 'tga 3'"),
        (HEAD + "    name: string @7+\n", ":3:18: versions that the message does not have"),
        (HEAD + "    name: string @3-2\n", ":3:18: versions that the message does not have"),
        (HEAD + "    name: string topics\n", ":3:18: unexpected 'topics'"),
        (HEAD + "    name: strin topic\n", ":3:11: unknown type strin"),
        (HEAD + "    a: [A] topic\n        b: int8\n", ":3:12: a struct names nothing"),
        (HEAD + "    name: int8?\n", ":3:15: int8 cannot be null"),
        (HEAD + "   name: int8\n", ":3:4: indented too far, or not by four spaces"),
        (HEAD + "        name: int8\n", ":3:9: indented too far, or not by four spaces"),
        (HEAD + "    a: int8\n    a: int8\n", ":4:5: a is defined twice"),
        (HEAD + "    a: [Thing]\n    b: int8\n", ":4:1: struct Thing of ThingRequest has no block"),
        (HEAD + "request\n", ":3:1: ThingRequest is defined twice"),
        ("request\n", ":1:1: 'request' before any 'api'"),
        ("    name: int8\n", ":1:1: a field outside of any message"),
        ("apo Thing\n", ":1:1: expected 'api', 'message', 'request', 'response' or a field"),
        ("api Thing versions=0-1 flexible=none\n", ":1:11: bad or missing option: 'key'"),
        ("api Thing key=x versions=0-1 flexible=none\n", ":1:11: bad or missing option: "),
        ("api Thing key=1 versions=0-1 flexible=none odd=1\n", ":1:11: unknown option: odd"),
    ],
)
def test_a_wrong_spec_names_file_line_and_column(text: str, error: str) -> None:
    with pytest.raises(spec.SpecError) as caught:
        spec.parse(text, "07_thing.spec")
    assert str(caught.value).startswith("07_thing.spec" + error)


def test_every_message_is_found_by_its_name() -> None:
    messages = every_message()
    assert len(messages) > 250
    assert [message for message in messages if spec.message(message.name) is not message] == []


def test_every_api_key_has_its_file() -> None:
    assert list(files.api_files()) == list(range(93))
    assert [key for key in files.api_files() if spec.api(key).key != key] == []


def test_no_message_of_a_name_that_is_not_there() -> None:
    with pytest.raises(KeyError):
        spec.message("NoSuchRequest")
    with pytest.raises(KeyError):
        spec.message("produceRequest")
    with pytest.raises(KeyError):
        spec.api(93)


def test_fields_have_no_versions_but_their_message_s() -> None:
    for message in every_message():
        for struct in (message.root, *message.structs.values()):
            for field in struct.fields:
                assert set(field.versions) <= set(message.versions), field.name
                assert set(field.nullable) <= set(field.versions), field.name
                assert set(field.tagged) <= set(message.flexible), field.name
