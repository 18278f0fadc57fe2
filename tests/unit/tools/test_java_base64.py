"""Base64 as Java reads it; tests/compat/test_storage_tool.py asks Java itself."""

import pytest

from kafkalite.tools.java_base64 import decoded


@pytest.mark.parametrize(
    ("text", "data"),
    [("", b""), ("N3", b"7"), ("N3==", b"7"), ("N3E", b"7q"), ("N3E=", b"7q"), ("N3F", b"7q"),
     ("N3Fx", b"7qq")],
)  # fmt: skip
def test_what_fills_up_the_end_may_be_left_out(text, data):
    assert decoded(text) == data


@pytest.mark.parametrize("text", ["N", "N=", "N3=", "N3E==", "N3E=N3E=", "N3ENN", "=", "N3E_", "ñ"])
def test_what_java_refuses_is_refused(text):
    with pytest.raises(ValueError):
        decoded(text)
