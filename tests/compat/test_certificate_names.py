"""The names in certificates, and the users that rules make of them, as Java and Kafka say."""

from __future__ import annotations

import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from random import Random

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from kafkalite.config import InvalidSetting
from kafkalite.jvm import jars, java
from kafkalite.security.certificates import rfc2253
from kafkalite.security.principals import NoRule, PrincipalMapper
from tests.compat.java_classes import compile_classes

SOURCE = Path(__file__).parent / "java" / "Names.java"
OIDS = (
    NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.LOCALITY_NAME, NameOID.STATE_OR_PROVINCE_NAME, NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT, NameOID.USER_ID, NameOID.EMAIL_ADDRESS, NameOID.SERIAL_NUMBER,
    NameOID.TITLE, NameOID.GIVEN_NAME,
)  # fmt: skip
TEXTS = (
    "client", " lead", "trail  ", "a,b", 'q"u', "plus+eq=", "#hash", "<x>;", "back\\slash", "é ü ñ",
    "名前", "  ", "a\r", "tab\there", "😀",
)  # fmt: skip
RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),.*$/$1/",
    "RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,DEFAULT",
    "RULE:^.*OU=(.*?),.*$/$1/U, RULE:^.*?O=(?<o>[^,]*).*$/${o}/, DEFAULT",
    "RULE:^CN=(.*?),(.*)$/$2$1$3$12$0/",
    r"RULE:(\w+)=(\p{Alnum}+).*/\$$1-\\$2/",
    "RULE:.*/x/",
    "RULE:^NOBODY$/x/",
    "RULE:^CN=(.*?),.*$/$1",
    "DEFAUL",
    "RULE:(/x/",
    "",
    "\n DEFAULT \n",
    r"RULE:\QCN=client\E(.*)/me$1/",
)
NAMES = 200


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory):
    """What Java says to names and rules."""
    classes = tmp_path_factory.mktemp("names")
    compile_classes([SOURCE], classes, ["reference"])

    def ask(asked: list[tuple[bytes, str]]) -> list[tuple[str, str]]:
        call = java.command(f"{classes}:{jars.class_path('reference')}", "Names", heap="128M")
        lines = (f"{der.hex()} {b64encode(rules.encode()).decode()}\n" for der, rules in asked)
        done = subprocess.run(
            call, input="".join(lines), capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        said = [b64decode(line).decode() for line in done.stdout.splitlines()]
        return list(zip(said[::2], said[1::2], strict=True))

    return ask


def some_name(random: Random) -> bytes:
    parts = []
    for _ in range(random.randint(1, 5)):
        values = []
        for oid in random.sample(OIDS, random.choice((1, 1, 1, 2))):
            is_ascii = oid in (NameOID.DOMAIN_COMPONENT, NameOID.EMAIL_ADDRESS)
            text = random.choice([each for each in TEXTS if not is_ascii or each.isascii()])
            kind = _ASN1Type.IA5String if is_ascii else _ASN1Type.UTF8String
            values.append(x509.NameAttribute(oid, text, kind))
        parts.append(x509.RelativeDistinguishedName(values))
    return x509.Name(parts).public_bytes()


def ours(der: bytes, rules: str) -> tuple[str, str]:
    name = rfc2253(der)
    try:
        return name, PrincipalMapper(rules).user(name)
    except NoRule:
        return name, "! NoMatchingRule"
    except InvalidSetting:
        return name, "! refused"


def test_names_and_users_are_those_of_java(names) -> None:
    random = Random(11)
    asked = [(some_name(random), random.choice(RULES)) for _ in range(NAMES)]
    asked += [(some_name(random), rules) for rules in RULES]
    theirs = [
        (name, "! refused" if user in REFUSED else user) for name, user in names(asked)
    ]  # fmt: skip
    found = [ours(*each) for each in asked]
    assert [
        (asked[number][1], mine, other)
        for number, (mine, other) in enumerate(zip(found, theirs, strict=True))
        if mine != other
    ] == []


# How Apache Kafka fails at a rule that is none, when it starts.
REFUSED = ("! IllegalArgumentException", "! PatternSyntaxException")
