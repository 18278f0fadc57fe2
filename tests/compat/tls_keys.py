"""Stores of keys for both brokers and for clients: some made by Java's own keytool.

Owns a folder of them, and the settings of the listeners and clients that use them.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

from kafkalite.jvm import java
from kafkalite.security.authority import Authority, Issued, pem_of, utc_now
from tests.left_behind import name_the_sockets_of

PASSWORD = "of-tests-only"
NAMES = "SAN=dns:localhost,ip:127.0.0.1"
SERVER = "CN=server,O=tests"
CLIENT = "CN=client,OU=people,O=tests"


class Keys:
    """The stores of one test run."""

    def __init__(self, folder: Path, now_ms: int) -> None:
        self.folder = folder
        authority = Authority("root of tests", utc_now(now_ms))
        stranger = Authority("another root", utc_now(now_ms))
        self.client = authority.issue(CLIENT)
        self.stranger = stranger.issue("CN=stranger")
        self.late = authority.issue("CN=late", until=utc_now(now_ms - 86_400_000))
        self.server = authority.issue("CN=server", ("localhost", "127.0.0.1"))
        self.root = pem_of(authority.root)
        pkcs12 = self._generated("server.p12", "PKCS12", "RSA", "2048")
        self.renewed = self._generated("renewed.p12", "PKCS12", "RSA", "2048")
        self._generated("strange.p12", "PKCS12", "RSA", "2048", subject="CN=another")
        jks = self._generated("server.jks", "JKS", "EC", "256")
        self.write("root.pem", self.root)
        self._keytool("-importcert", "-noprompt", "-alias", "root", "-keystore", "trust.jks",
                      "-storetype", "JKS", "-file", str(folder / "root.pem"))  # fmt: skip
        self.trusted = self.write("trusted.pem", self.root + pkcs12 + jks)
        self.other = self.write("other.pem", pem_of(stranger.root))

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def pem_of(self, issued: Issued) -> str:
        """A file with key and certificates."""
        name = f"{issued.certificate.serial_number}.pem"
        return self.write(name, issued.key_pem + issued.chain_pem)

    def listeners(self, end_of_line: str) -> dict[str, str]:
        """Of SSL, whose store is PKCS #12, of MUTUAL, whose is JKS, and INLINE, which has texts;
        `end_of_line` is how the lines of these are parted."""
        own = {
            "ssl.keystore.location": str(self.folder / "server.p12"),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": PASSWORD,
        }
        mutual = {
            "ssl.keystore.location": str(self.folder / "server.jks"),
            "ssl.keystore.type": "JKS",
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.location": str(self.folder / "trust.jks"),
            "ssl.truststore.type": "JKS",
            "ssl.truststore.password": PASSWORD,
            "ssl.client.auth": "required",
        }
        inline = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": self.server.key_pem.replace("\n", end_of_line),
            "ssl.keystore.certificate.chain": self.server.chain_pem.replace("\n", end_of_line),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.root.replace("\n", end_of_line),
            "ssl.client.auth": "requested",
        }
        named = {"ssl": own, "mutual": mutual, "inline": inline}
        return {
            f"listener.name.{listener}.{name}": value
            for listener, settings in named.items()
            for name, value in settings.items()
        }

    def context(self, shown: Issued | None, trusted: str | None = None) -> ssl.SSLContext:
        """For clients that take a context of Python's."""
        context = name_the_sockets_of(ssl.create_default_context(cafile=trusted or self.trusted))
        if shown is not None:
            context.load_cert_chain(self.pem_of(shown))
        return context

    def librdkafka(self, shown: Issued | None, trusted: str | None = None) -> dict[str, str]:
        """For librdkafka."""
        own = {} if shown is None else {
            "ssl.certificate.pem": shown.chain_pem, "ssl.key.pem": shown.key_pem
        }  # fmt: skip
        return {"security.protocol": "SSL", "ssl.ca.location": trusted or self.trusted, **own}

    def java(self, shown: Issued | None, trusted: str | None = None) -> str:
        """A file of settings for Apache Kafka's tools."""
        settings = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": trusted or self.trusted,
        }
        if shown is not None:
            settings |= {
                "ssl.keystore.type": "PEM", "ssl.keystore.location": self.pem_of(shown)
            }  # fmt: skip
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        return self.write(f"{abs(hash(lines))}.properties", lines)

    def _generated(
        self, name: str, kind: str, algorithm: str, size: str, subject: str = SERVER
    ) -> str:
        """Has keytool make a store with a key; the PEM of its certificate."""
        how = ["secp256r1"] if algorithm == "EC" else [size]
        option = "-groupname" if algorithm == "EC" else "-keysize"
        self._keytool("-genkeypair", "-alias", "server", "-keyalg", algorithm, option, *how,
                      "-dname", subject, "-validity", "30", "-ext", NAMES,
                      "-keystore", name, "-storetype", kind, "-keypass", PASSWORD)  # fmt: skip
        return self._keytool("-exportcert", "-rfc", "-alias", "server", "-keystore", name)

    def _keytool(self, *words: str) -> str:
        beside = java.find().resolve().with_name("keytool")
        program = str(beside) if beside.exists() else shutil.which("keytool")
        assert program is not None, "a Java has a keytool"
        call = [program, *words, "-storepass", PASSWORD]
        done = subprocess.run(
            call, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
