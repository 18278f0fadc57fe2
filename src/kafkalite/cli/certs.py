"""`kafkalite certs`: an authority for tests, with keys of a server and a client, in all formats."""

from __future__ import annotations

import os
import secrets
import socket
import time
from pathlib import Path

import click

PASSWORD_BYTES = 18
NAMES = ("localhost", "127.0.0.1", "::1")


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--host", "hosts", multiple=True, metavar="NAME",
              help="One more name or address that clients call the server by; may be repeated.")
@click.option("--rsa", is_flag=True, help="RSA keys in place of ECDSA: for old clients.")
@click.option("--password", metavar="TEXT", envvar="KAFKALITE_CERTS_PASSWORD",
              help="Password of the stores, or KAFKALITE_CERTS_PASSWORD [one is made].")
def command(directory: Path, hosts: tuple[str, ...], rsa: bool, password: str | None) -> None:
    """Make a certificate authority in DIR, with keys of a server and a client: for tests.

    Prints what server.properties and clients are to have. DIR must be new or empty.
    """
    try:
        from kafkalite.security.authority import Authority, pem_of, utc_now
    except ImportError:
        raise click.ClickException(
            "certificates are made with a library that is not installed: "
            "pip install 'kafkalite[security]'"
        ) from None
    _make_directory(directory)
    password = password or secrets.token_urlsafe(PASSWORD_BYTES)
    authority = Authority("kafkalite tests", utc_now(time.time_ns() // 1_000_000))
    names = list(dict.fromkeys((*NAMES, socket.gethostname(), *hosts)))
    try:
        issued = {
            "server": authority.issue("CN=server", names, is_rsa=rsa),
            "client": authority.issue("CN=client", is_rsa=rsa),
        }
    except ValueError as error:
        raise click.ClickException(f"--host: {error}") from None
    files = {
        "ca.pem": pem_of(authority.root).encode(),
        "truststore.p12": authority.trusted_pkcs12(password),
        "truststore.jks": authority.trusted_jks(password),
        "password": password.encode(),
    }
    for name, each in issued.items():
        files[f"{name}.pem"] = (each.key_pem + each.chain_pem).encode()
        files[f"{name}.p12"] = each.pkcs12(password)
        files[f"{name}.jks"] = each.jks(password, secrets.token_bytes(20))
    for name, data in files.items():
        _write(directory / name, data)
    click.echo(_SAID.format(dir=directory.absolute()))


def _make_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise click.ClickException(
            f"{directory} is not empty: name a new directory, so that no key is overwritten"
        )
    directory.chmod(0o700)


def _write(path: Path, data: bytes) -> None:
    """Readable by its owner alone, from the first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


_SAID = """\
# server.properties
listeners=SSL://:9093
ssl.keystore.type=PEM
ssl.keystore.location={dir}/server.pem
ssl.truststore.type=PEM
ssl.truststore.location={dir}/ca.pem
ssl.client.auth=required

# Java's clients; the same stores are there as .p12 and .jks, their password is in {dir}/password
security.protocol=SSL
ssl.keystore.type=PEM
ssl.keystore.location={dir}/client.pem
ssl.truststore.type=PEM
ssl.truststore.location={dir}/ca.pem

# librdkafka (confluent-kafka)
security.protocol=SSL
ssl.ca.location={dir}/ca.pem
ssl.certificate.location={dir}/client.pem
ssl.key.location={dir}/client.pem

# kafka-python; aiokafka takes ssl_context=ssl.create_default_context(cafile=…) with the same files
security_protocol="SSL", ssl_cafile="{dir}/ca.pem",
ssl_certfile="{dir}/client.pem", ssl_keyfile="{dir}/client.pem\""""
