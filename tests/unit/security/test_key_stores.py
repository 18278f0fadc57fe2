"""Stores of keys, those of Java's own keytool among them; and stores that are none."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kafkalite.config import InvalidSetting
from kafkalite.security import jks
from kafkalite.security.authority import der_of, pem_of
from kafkalite.security.key_stores import Place, certificates_of, read_identities, read_trusted
from tests.unit.security import keys

SALT = bytes(range(20))
needs_keytool = pytest.mark.skipif(shutil.which("keytool") is None, reason="no Java here")


def place(path: Path, kind: str, password: str | None = keys.PASSWORD, **others: str) -> Place:
    return Place("ssl.keystore.location", kind, str(path), password, **others)


def keytool(folder: Path, *words: str) -> str:
    call = ["keytool", *words, "-storepass", keys.PASSWORD]
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        call, cwd=folder, capture_output=True, text=True, check=True, env=environment, timeout=60
    )
    return done.stdout


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize("told", ["JKS", "PKCS12"])
def test_java_takes_both_for_each_other(tmp_path: Path, kind: str, told: str) -> None:
    issued = keys.server()
    store = issued.jks(keys.PASSWORD, SALT) if kind == "JKS" else issued.pkcs12(keys.PASSWORD)
    (tmp_path / "store").write_bytes(store)
    [found] = read_identities(place(tmp_path / "store", told))
    chain = [der_of(issued.certificate), der_of(issued.root)]
    assert certificates_of(found.chain.decode()) == chain
    assert found.key.decode() == issued.key_pem
    assert keys.PASSWORD not in repr(found) + repr(place(tmp_path, told))


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_trusted_certificates(tmp_path: Path, kind: str) -> None:
    authority = keys.authority()
    make = authority.trusted_jks if kind == "JKS" else authority.trusted_pkcs12
    (tmp_path / "store").write_bytes(make(keys.PASSWORD))
    assert read_trusted(place(tmp_path / "store", kind)) == [der_of(authority.root)]


def test_a_store_of_javas_is_read_without_its_password_for_what_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(keys.authority().trusted_jks(keys.PASSWORD))
    assert len(read_trusted(place(tmp_path / "store", "JKS", None))) == 1


@needs_keytool
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize("algorithm", ["RSA", "EC"])
def test_stores_that_keytool_made(tmp_path: Path, kind: str, algorithm: str) -> None:
    keytool(tmp_path, "-genkeypair", "-alias", "a", "-keyalg", algorithm, "-dname", "CN=é,O=x",
            "-keystore", "store", "-storetype", kind, "-keypass", keys.PASSWORD)  # fmt: skip
    pem = keytool(tmp_path, "-exportcert", "-rfc", "-alias", "a", "-keystore", "store")
    [found] = read_identities(place(tmp_path / "store", kind))
    assert certificates_of(found.chain.decode()) == certificates_of(pem)
    (tmp_path / "cert.pem").write_text(pem)
    keytool(tmp_path, "-importcert", "-noprompt", "-alias", "t", "-file", "cert.pem",
            "-keystore", "trust", "-storetype", kind)  # fmt: skip
    assert read_trusted(place(tmp_path / "trust", kind)) == certificates_of(pem)


@needs_keytool
def test_a_key_with_a_password_of_its_own(tmp_path: Path) -> None:
    keytool(tmp_path, "-genkeypair", "-alias", "a", "-keyalg", "EC", "-dname", "CN=x",
            "-keystore", "store", "-storetype", "JKS", "-keypass", "of the key")  # fmt: skip
    assert len(read_identities(place(tmp_path / "store", "JKS", key_password="of the key"))) == 1
    with pytest.raises(InvalidSetting, match="the password of its key is wrong"):
        read_identities(place(tmp_path / "store", "JKS"))


@needs_keytool
def test_keytool_reads_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(keys.server().jks(keys.PASSWORD, SALT))
    (tmp_path / "trust").write_bytes(keys.authority().trusted_jks(keys.PASSWORD))
    assert "PrivateKeyEntry" in keytool(tmp_path, "-list", "-keystore", "key")
    assert "trustedCertEntry" in keytool(tmp_path, "-list", "-keystore", "trust")
    moved = ("-importkeystore", "-srckeystore", "key", "-srcstorepass", keys.PASSWORD,
             "-destkeystore", "moved", "-deststoretype", "PKCS12")  # fmt: skip
    keytool(tmp_path, *moved)  # and has the key, by its password
    [found] = read_identities(place(tmp_path / "moved", "PKCS12"))
    assert found.key.decode() == keys.server().key_pem


def test_pem_in_a_file_and_in_one_line(tmp_path: Path) -> None:
    issued = keys.server()
    (tmp_path / "both.pem").write_text(f"words\n{issued.chain_pem}more\n{issued.key_pem}")
    [of_file] = read_identities(place(tmp_path / "both.pem", "PEM", None))
    key, chain = (text.replace("\n", " ") for text in (issued.key_pem, issued.chain_pem))
    texts = Place("ssl.keystore.key", "PEM", key=key, certificates=chain)
    [of_texts] = read_identities(texts)
    assert (of_file.key, of_file.chain) == (of_texts.key, of_texts.chain)
    assert of_file.leaf == der_of(issued.certificate)
    [root] = read_trusted(Place("x", "PEM", certificates=pem_of(issued.root)))
    assert root == der_of(issued.root)


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    issued = keys.server()
    closed = keys.closed_key_pem(issued, "opens it")
    texts = Place("ssl.keystore.key", "PEM", key=closed, certificates=issued.chain_pem)
    with pytest.raises(InvalidSetting, match=r"^ssl\.keystore\.key: .*ssl\.key\.password is not"):
        read_identities(texts)
    [found] = read_identities(
        Place("x", "PEM", key=closed, certificates=issued.chain_pem, key_password="opens it")
    )
    assert found.password == "opens it"


WRONG = {
    "no such file": (None, "JKS", "No such file or directory"),
    "empty": (b"", "JKS", "no PKCS #12 store"),
    "neither": (b"something else", "PKCS12", "no PKCS #12 store"),
    "an early end": (jks.MAGIC + b"\0\0\0\2\0\0\0\1", "JKS", "password was incorrect"),
    "no certificate": (b"nothing", "PEM", "no private key"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_a_store_that_is_none_is_one_sentence(tmp_path: Path, name: str) -> None:
    data, kind, why = WRONG[name]
    path = tmp_path / "store"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InvalidSetting, match=why) as raised:
        read_identities(place(path, kind))
    assert str(raised.value).startswith(f"ssl.keystore.location: {path}: ")
    assert keys.PASSWORD not in str(raised.value)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_wrong_password_is_said_and_not_told(tmp_path: Path, kind: str) -> None:
    issued = keys.server()
    store = issued.jks(keys.PASSWORD, SALT) if kind == "JKS" else issued.pkcs12(keys.PASSWORD)
    (tmp_path / "store").write_bytes(store)
    with pytest.raises(InvalidSetting, match="keystore password was incorrect") as raised:
        read_identities(place(tmp_path / "store", kind, "a bad guess"))
    assert "guess" not in str(raised.value)


def test_a_store_cut_anywhere_is_one_sentence(tmp_path: Path) -> None:
    whole = keys.server().jks(keys.PASSWORD, SALT)
    for end in range(0, len(whole), 37):
        (tmp_path / "store").write_bytes(whole[:end])
        for password in (keys.PASSWORD, None):
            with pytest.raises(InvalidSetting):
                read_identities(place(tmp_path / "store", "JKS", password))


def test_a_key_hidden_in_an_unknown_way_is_named(tmp_path: Path) -> None:
    whole = keys.server().jks(keys.PASSWORD, SALT)
    known = bytes.fromhex("2b060104012a02110101")
    store = whole.replace(known, known[:-1] + b"\x07")
    with pytest.raises(jks.WrongPassword):
        jks.read(store, keys.PASSWORD)
    [entry] = jks.read(store, None).keys
    with pytest.raises(jks.MalformedStore, match=r"unknown algorithm 1\.3\..*\.2\.17\.1\.7"):
        entry.key(keys.PASSWORD)


def test_a_store_without_a_key_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(keys.authority().trusted_jks(keys.PASSWORD))
    with pytest.raises(InvalidSetting, match="no private key in this store"):
        read_identities(place(tmp_path / "store", "JKS"))
