"""Text that is no UTF-8 is read as Java reads it (Java 17 said so of each of these)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol import codec
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.protocol.text import AS_JAVA
from kafkalite.server.request_header import read_header

READ = {
    "61ff62": "a?b",
    "c328": "?(",
    "c080": "??",
    "e08080": "???",
    "eda080": "?",
    "eda0": "?",
    "eda041": "?A",
    "edbfbfed": "??",
    "f09f98": "?",
    "f5808080": "????",
    "f0808080": "????",
    "f09f9880": "\U0001f600",
}


@pytest.mark.parametrize(("data", "text"), READ.items())
def test_what_is_no_utf_8_is_replaced_as_java_does(data: str, text: str) -> None:
    wanted = text.replace("?", "\ufffd")
    assert bytes.fromhex(data).decode("utf-8", AS_JAVA) == wanted


@given(st.binary(max_size=40))
def test_any_bytes_are_text_that_can_be_written(data: bytes) -> None:
    text = data.decode("utf-8", AS_JAVA)
    assert text.encode().decode() == text


@given(st.binary(min_size=1, max_size=40))
def test_a_request_with_any_bytes_for_text_is_read(data: bytes) -> None:
    size = len(data).to_bytes(2, "big")
    request = codec.decode(MetadataRequest, 1, b"\0\0\0\1" + size + data, 0)
    wanted = data.decode("utf-8", AS_JAVA)
    assert [topic.name for topic in request.topics or ()] == [wanted]
    header = b"\0\3\0\1\0\0\0\7" + size + data
    assert read_header(memoryview(header), False)[3] == wanted
