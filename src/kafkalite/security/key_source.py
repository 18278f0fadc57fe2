"""Where a set of keys is read: a file, or an address of HTTP.

Owns the place and what is trusted there. Reading blocks, so it is for a worker alone.
"""

from __future__ import annotations

from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, unquote, urlsplit

from kafkalite.env.dataclasses import dataclass
from kafkalite.env.fetching import fetched
from kafkalite.env.tls import Offer, TlsError, client_context
from kafkalite.security.key_stores import Place, read_trusted

if TYPE_CHECKING:
    import ssl

FILE, HTTP, HTTPS = "file", "http", "https"
SCHEMES: Final = (HTTP, HTTPS, FILE)
LARGEST: Final = 1_048_576
PATIENCE_S: Final = 20.0


class KeysUnreadable(Exception):
    """Why there are no keys to be had from there now."""


@dataclass(slots=True, frozen=True)
class KeySource:
    """One place."""

    url: str
    trusted: Place | None = None  # None: what this machine trusts
    checks_name: bool = True

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def path(self) -> Path | None:
        """Of a file."""
        return Path(unquote(self.parts.path)) if self.parts.scheme.lower() == FILE else None

    def __str__(self) -> str:
        """Without what might be a password."""
        parts = self.parts
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def read(self) -> bytes:
        """Raises KeysUnreadable."""
        path = self.path
        try:
            if path is None:
                return fetched(self.url, self._context(), PATIENCE_S, LARGEST)
            with path.open("rb") as file:
                data = file.read(LARGEST + 1)
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise KeysUnreadable(reason) from None
        if len(data) > LARGEST:
            raise KeysUnreadable(f"it has more than {LARGEST} bytes")
        return data

    def _context(self) -> ssl.SSLContext | None:
        if self.parts.scheme.lower() != HTTPS:
            return None
        trusted = None if self.trusted is None else read_trusted(self.trusted)
        try:
            return client_context(Offer(trusted=trusted, checks_name=self.checks_name))
        except TlsError as error:
            raise ValueError(str(error)) from None
