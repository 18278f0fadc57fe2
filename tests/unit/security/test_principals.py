"""Rules from the names in certificates to users; what Java makes of each is in the compat tests."""

from __future__ import annotations

import pytest

from kafkalite.config import InvalidSetting
from kafkalite.security.authority import der_of
from kafkalite.security.certificates import name_of, rfc2253
from kafkalite.security.der import MalformedDer
from kafkalite.security.principals import NoRule, PrincipalMapper
from tests.unit.security import keys

NAME = "CN=Duke,OU=JavaSoft,O=Sun Microsystems"


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("DEFAULT", NAME),
        ("", None),
        ("RULE:^CN=(.*?),OU=JavaSoft.*$/$1/", "Duke"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L", "duke@javasoft"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "DUKE@JAVASOFT"),
        ("RULE:^OU=(.*?)$/$1/, RULE:^CN=(.*?),.*$/$1/, DEFAULT", "Duke"),
        ("RULE:^OU=(.*?)$/$1/\nDEFAULT", NAME),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?)$/$1@$2@$4/", "Duke@JavaSoft@$4"),
        ("RULE:^CN=(.*?),.*$/$12/", "Duke2"),
        (r"RULE:^CN=(?<name>\p{Alpha}+),.*$/${name}/", "Duke"),
        (r"RULE:\QCN=Duke\E,(.*)/$0/L", NAME.lower()),
        (r"RULE:^CN=(\w+),OU=([^,]+),.*$/\$1$2/", "$1JavaSoft"),
    ],
)
def test_rules(rules: str, user: str | None) -> None:
    if user is None:
        with pytest.raises(NoRule, match="No rules apply to CN=Duke"):
            PrincipalMapper(rules).user(NAME)
    else:
        assert PrincipalMapper(rules).user(NAME) == user


@pytest.mark.parametrize(
    "rules",
    ["default", "DEFAUL", "DEFAULT/L", "RULE:CN=(.*?)/$1", "RULE:(/x/", "RULE:a/$1/", r"RULE:\G/x/",
     r"RULE:[a&&b]/x/", r"RULE:\p{L}/x/", "RULE:(a)/$/", "RULE:(a)/${b}/"],
)  # fmt: skip
def test_rules_that_are_none(rules: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^ssl\.principal\.mapping\.rules: "):
        PrincipalMapper(rules)


def test_the_name_of_a_certificate_is_in_javas_order() -> None:
    assert name_of(der_of(keys.client().certificate)) == "CN=client,OU=people,O=tests"


def test_bytes_that_are_no_name() -> None:
    for data in (b"", b"\x30", b"\x30\x05\0", b"\x30\x02\x31\x00\x00", bytes(40), b"\x30\x84"):
        with pytest.raises(MalformedDer):
            rfc2253(data)
        with pytest.raises(MalformedDer):
            name_of(data)
