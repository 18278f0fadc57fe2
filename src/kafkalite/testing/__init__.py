"""What users import in their tests: a broker inside the test's own process, or in a container.

Importing this package costs nothing; a broker's rooms are imported when one is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkalite.testing.container import KafkaliteContainer as KafkaliteContainer


def __getattr__(name: str) -> Any:
    """KafkaliteContainer is here, too, for those who have testcontainers."""
    if name != "KafkaliteContainer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafkalite.testing.container import KafkaliteContainer

    return KafkaliteContainer
