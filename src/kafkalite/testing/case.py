"""A broker for unittest: `class TestOrders(WithKafkalite, unittest.TestCase)`.

    kafkalite_options = {"topics": {"orders": 3}}

    def test_orders(self):
        self.kafkalite.produce("orders", {"id": 1})

All tests of a class share one, from which what a test had go wrong is taken back at its end;
`kafkalite_is_fresh = True` gives each test its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kafkalite.testing.embedded import EmbeddedKafka


class WithKafkalite:
    """Stands before unittest.TestCase among a class's bases."""

    kafkalite: EmbeddedKafka
    kafkalite_options: ClassVar[Mapping[str, Any]] = {}
    kafkalite_is_fresh: ClassVar[bool] = False

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()  # type: ignore[misc]
        if not cls.kafkalite_is_fresh:
            cls.kafkalite = EmbeddedKafka(**cls.kafkalite_options).start()
            cls.addClassCleanup(cls.kafkalite.stop)  # type: ignore[attr-defined]

    def setUp(self) -> None:
        if self.kafkalite_is_fresh:
            self.kafkalite = EmbeddedKafka(**self.kafkalite_options).start()
            self.addCleanup(self.kafkalite.stop)  # type: ignore[attr-defined]
        else:
            self.addCleanup(self.kafkalite.no_faults)  # type: ignore[attr-defined]
        super().setUp()  # type: ignore[misc]
