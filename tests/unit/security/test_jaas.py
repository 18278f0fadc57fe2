"""JAAS in a setting: read as Kafka reads it, and never quoted in what is said of it."""

import pytest

from kafkalite.security.jaas import Entry, MalformedJaas, parse_entry

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ('user_alice="a" user_bob="b"', {"user_alice": "a", "user_bob": "b"}),
        ("user_alice='single'", {"user_alice": "single"}),
        ('user_alice = "blanks"', {"user_alice": "blanks"}),
        ("user_alice=word-with_$igns.and.9", {"user_alice": "word-with_$igns.and.9"}),
        (r'user_a="say \"so\" \\ \101 \t"', {"user_a": 'say "so" \\ A \t'}),
        ('user_a="/* no */ // comment" /* a comment */', {"user_a": "/* no */ // comment"}),
        ('user_a="1" // to the end of the line\n user_b="2"', {"user_a": "1", "user_b": "2"}),
        ('user_a=""', {"user_a": ""}),
        ('user_a="ünï漢"', {"user_a": "ünï漢"}),
        ('ünï="x"', {"ünï": "x"}),
        ('user_a="once" user_a="twice"', {"user_a": "twice"}),
        ("", {}),
    ],
)
def test_options(options, found):
    assert parse_entry(f"{PLAIN} required {options};") == Entry(PLAIN, found)


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_flags(flag):
    assert parse_entry(f"{PLAIN} {flag};").module == PLAIN


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Login module not specified"),
        ("// only a comment", "Login module not specified"),
        (PLAIN, "control flag not specified"),
        (f"{PLAIN} = x;", "control flag is not available"),
        (f"{PLAIN} hunter2 user_a=b;", "Invalid login module control flag"),
        (f'{PLAIN} required user_a="hunter2"', "not terminated by semi-colon"),
        (f'{PLAIN} required user_a "hunter2";', "Value not specified for option 1"),
        (f'{PLAIN} required user_a="x" hunter2;', "Value not specified for option 2"),
        (f"{PLAIN} required user_a=12345;", "Value not specified for option 1"),
        (f"{PLAIN} required user_a=-hunter2;", "Value not specified for option 1"),
        (f'{PLAIN} required user_a="hunter2\n";', "Value not specified for option 2"),
        (f'{PLAIN} required user_a="x"; {PLAIN} required;', "contains 2 login modules"),
    ],
)
def test_what_cannot_be_read_is_named_and_not_quoted(text, why):
    with pytest.raises(MalformedJaas, match=why) as refused:
        parse_entry(text)
    assert "hunter2" not in str(refused.value)


def test_an_entry_that_is_shown_shows_no_secret():
    assert "hunter2" not in repr(parse_entry(f'{PLAIN} required user_a="hunter2";'))
