"""Writes docs/kips.md."""

from tests.kips import PAGE, as_page

PAGE.write_text(as_page(), encoding="utf-8")
