"""Users with their credentials, as `kafka-storage format --add-scram` is given them.

Owns that syntax, and what such a record looks like when it is printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkalite.coordinators.cluster.records import SCRAM
from kafkalite.coordinators.cluster.scram import Upsertion, record_of
from kafkalite.env.randomness import system_random
from kafkalite.protocol.messages import UserScramCredentialRecord
from kafkalite.security.scram import BY_NUMBER, MAX_ITERATIONS, MIN_ITERATIONS
from kafkalite.tools.failures import TerseFailure
from kafkalite.tools.java_base64 import decoded
from kafkalite.tools.java_numbers import whole

SCRAM_LEVEL: Final = SCRAM
_MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_KNOWN = ("name", "salt", "iterations", "password", "saltedpassword")
_SALT_BITS = 130


def credentials(words: Iterable[str]) -> list[UserScramCredentialRecord]:
    return [_credential(word.strip()) for word in words]


def _credential(word: str) -> UserScramCredentialRecord:
    name, sign, text = word.partition("=")
    if not sign:
        raise TerseFailure(f"Failed to find equals sign in SCRAM argument '{word}'")
    if name not in _MECHANISMS:
        raise TerseFailure(f"The add-scram mechanism {name} is not supported.")
    if not text.startswith("["):
        raise TerseFailure("Expected configuration string to start with [")
    if not text.endswith("]"):
        raise TerseFailure("Expected configuration string to end with ]")
    fields = dict(_field(each.strip()) for each in text[1:-1].split(","))
    return record_of(_upsertion(name, fields))


def _field(word: str) -> tuple[str, str]:
    name, sign, value = word.partition("=")
    if not sign:
        raise TerseFailure(f"No equals sign found in SCRAM component: {word}")
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return name, value


def _upsertion(name: str, fields: dict[str, str]) -> Upsertion:
    mechanism = _MECHANISMS[name]
    salt, salted = _bytes(fields, "salt"), _bytes(fields, "saltedpassword")
    iterations = _iterations(name, fields.get("iterations"))
    unknown = sorted(set(fields) - set(_KNOWN))
    if unknown:
        raise TerseFailure(f"Unknown SCRAM configurations: {', '.join(unknown)}")
    if "name" not in fields:
        raise TerseFailure("You must supply 'name' to add-scram")
    if "password" in fields:
        salt = _new_salt() if salt is None else salt
        password = fields["password"]
        salted = BY_NUMBER[mechanism].salted(password, salt, iterations)
    elif salted is None:
        raise TerseFailure("You must supply one of 'password' or 'saltedpassword' to add-scram")
    elif salt is None:
        raise TerseFailure("You must supply 'salt' with 'saltedpassword' to add-scram")
    return Upsertion(
        name=fields["name"], mechanism=mechanism, iterations=iterations, salt=salt,
        salted_password=salted,
    )  # fmt: skip


def _bytes(fields: dict[str, str], name: str) -> bytes | None:
    if name not in fields:
        return None
    try:
        return decoded(fields[name])
    except ValueError:
        what = {"salt": "salt", "saltedpassword": "saltedPassword"}[name]
        raise TerseFailure(f"Failed to decode given {what}: {fields[name]}") from None


def _iterations(mechanism: str, text: str | None) -> int:
    if text is None:
        return MIN_ITERATIONS
    try:
        iterations = whole(text)
    except ValueError:
        raise TerseFailure(f"Failed to parse iterations count: {text}") from None
    end = f"for add-scram using {mechanism.replace('-', '_')}"
    if iterations < MIN_ITERATIONS:
        raise TerseFailure(f"The 'iterations' value must be >= {MIN_ITERATIONS} {end}")
    if iterations > MAX_ITERATIONS:
        raise TerseFailure(f"The 'iterations' value must be <= {MAX_ITERATIONS} {end}")
    return iterations


def _new_salt() -> bytes:
    """Of letters and digits, as Apache Kafka makes them."""
    number, text = system_random().getrandbits(_SALT_BITS), ""
    while number:
        number, digit = divmod(number, 36)
        text = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + text
    return text.encode()


def shown(record: UserScramCredentialRecord) -> str:
    return (
        f"UserScramCredentialRecord(name='{record.name}', mechanism={record.mechanism}, "
        f"salt={_signed(record.salt)}, storedKey={_signed(record.stored_key)}, "
        f"serverKey={_signed(record.server_key)}, iterations={record.iterations})"
    )


def _signed(data: bytes) -> str:
    """Bytes as Java prints them."""
    return f"[{', '.join(str(each - 256 if each > 127 else each) for each in data)}]"
