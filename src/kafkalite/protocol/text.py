"""Text on the wire as Java reads it: what is no UTF-8 is replaced, and nobody is turned away.

Owns that rule. Invariant: what is read is text that can be written as UTF-8.
"""

from __future__ import annotations

import codecs

# The name of the rule, as `bytes.decode` takes it.
AS_JAVA = "as-java"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SURROGATE = 0xED


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """One character for what Python takes for one mistake; half a surrogate pair is one, too."""
    assert isinstance(error, UnicodeDecodeError)
    data, start = error.object, error.start
    if data[start] != _SURROGATE:
        return _REPLACEMENT, error.end
    end = start + 1
    while end < min(start + 3, len(data)) and data[end] & 0xC0 == 0x80:
        end += 1
    return _REPLACEMENT, end


codecs.register_error(AS_JAVA, _replaced)
