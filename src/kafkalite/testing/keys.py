"""Keys and certificates of a test's brokers and clients, made anew for each EmbeddedKafka.

Owns a directory of its own for what clients read as files: it is there while brokers run, under the
same name after each start, and its owner alone can read it. The brokers' own key is in no file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

NAMES = ("localhost", "127.0.0.1", "::1")
BROKER = "kafkalite"  # as whom brokers call each other
CA = "ca.pem"


class Keys:
    """An authority, a certificate for the brokers, and one for each client that is named."""

    def __init__(self, host: str, clients: Sequence[str]) -> None:
        try:
            from kafkalite.security.authority import Authority, pem_of, utc_now
        except ImportError:
            raise ValueError(
                "security: certificates are made with a library that is not installed: "
                "pip install 'kafkalite[security]'"
            ) from None
        authority = Authority("kafkalite tests", utc_now(time.time_ns() // 1_000_000))
        names = list(dict.fromkeys((*NAMES, *([host] if host else []))))
        self.root = pem_of(authority.root)
        self.broker = authority.issue(f"CN={BROKER}", names)
        self.clients = {name: authority.issue(f"CN={name}") for name in clients}
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """Where the files are; ValueError while there are none, as nothing runs."""
        if self._folder is None:
            raise ValueError("the files of certificates are there once the broker was started")
        return self._folder

    @property
    def ca(self) -> str:
        return str(self.folder / CA)

    def file_of(self, client: str) -> str:
        """Key and certificates of a client."""
        return str(self.folder / f"client-{client}.pem")

    def context(self, client: str | None) -> ssl.SSLContext:
        """For clients that take a context of Python's."""
        import ssl

        context = ssl.create_default_context(cadata=self.root)
        if client is not None:
            context.load_cert_chain(self.file_of(client))
        return context

    def write(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="kafkalite-keys-"))  # of mode 0700
        else:
            self._folder.mkdir(mode=0o700)
        _write(self.ca, self.root)
        for name, issued in self.clients.items():
            _write(self.file_of(name), issued.key_pem + issued.chain_pem)

    def remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
