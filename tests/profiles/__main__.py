"""Writes src/kafkalite/testing/profiles.txt: python -m tests.profiles. Fetches 100 MB of jars."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.profiles import releases

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        classes = releases.compiled(Path(folder))
        found = [releases.asked(release, classes).profile for release in releases.releases()]
    releases.TABLE.write_text(releases.text(found))
