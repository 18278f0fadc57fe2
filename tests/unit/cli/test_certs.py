"""`kafkalite certs`: files that their owner alone can read, which listeners and clients take."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkalite.cli.main import main
from kafkalite.config import BrokerConfig
from kafkalite.config.properties import parse_properties
from kafkalite.security.certificates import alternative_names
from kafkalite.security.key_stores import Place, read_identities, read_trusted
from kafkalite.security.tls_settings import check_tls

FORMATS = {"pem": "PEM", "p12": "PKCS12", "jks": "JKS"}


def certs(*words: str) -> str:
    done = CliRunner().invoke(main, ["certs", *words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("options", [[], ["--rsa"]])
def test_every_format_holds_the_same(tmp_path: Path, options: list[str]) -> None:
    folder = tmp_path / "keys"
    certs(str(folder), "--password", "of tests", "--host", "kafka.test", *options)
    for who in ("server", "client"):
        found = [
            read_identities(
                Place("x", kind, str(folder / f"{who}.{end}"), None if end == "pem" else "of tests")
            )
            for end, kind in FORMATS.items()
        ]
        assert [[(each.key, each.chain) for each in one] for one in found] == [
            [(found[0][0].key, found[0][0].chain)]
        ] * 3
    stores = [("ca.pem", "PEM"), ("truststore.p12", "PKCS12"), ("truststore.jks", "JKS")]
    trusted = [
        read_trusted(Place("x", kind, str(folder / name), None if kind == "PEM" else "of tests"))
        for name, kind in stores
    ]
    assert trusted[0] == trusted[1] == trusted[2]
    [server] = read_identities(Place("x", "PEM", str(folder / "server.pem")))
    assert b"\x82\x0akafka.test" in alternative_names(server.leaf)
    assert b"\x87\x04\x7f\x00\x00\x01" in alternative_names(server.leaf)


def test_nobody_else_can_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    said = certs(str(folder))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    assert (folder / "password").read_text() not in said
    assert certs(str(tmp_path / "others")) != said
    assert (folder / "password").read_text() != (tmp_path / "others" / "password").read_text()


def test_what_is_printed_can_be_pasted(tmp_path: Path) -> None:
    said = certs(str(tmp_path / "keys"))
    server = said.split("\n\n")[0]
    check_tls(BrokerConfig(parse_properties(server)))
    context = ssl.create_default_context(cafile=tmp_path / "keys" / "ca.pem")
    context.load_cert_chain(tmp_path / "keys" / "client.pem")


def test_no_key_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    done = CliRunner().invoke(main, ["certs", str(tmp_path)])
    assert done.exit_code == 1
    assert "is not empty: name a new directory" in done.output
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_a_name_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["certs", str(tmp_path / "keys"), "--host", "käfka"])
    assert done.exit_code == 1
    assert done.output.startswith("Error: --host: ")
