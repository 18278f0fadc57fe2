"""`kafkalite serve --secure`: a broker with TLS, logins and access rules, and its first admin.

Owns the directory beside the data in which its keys are, made at the first start and used from then
on: a certificate for this machine's names, and the admin's password. All of it is readable by its
owner alone. The password goes into the metadata when nobody there is called admin.
"""

from __future__ import annotations

import os
import secrets
import shlex
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafkalite.broker.roles import Process
from kafkalite.cli._private_file import write_private
from kafkalite.config import InvalidSetting
from kafkalite.config.authorization import AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from kafkalite.config.listeners import SASL_SSL
from kafkalite.config.properties import as_properties
from kafkalite.coordinators.cluster.events import AlterUserScramCredentials
from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError
from kafkalite.protocol.messages import AlterUserScramCredentialsRequest
from kafkalite.security.client_settings import jaas_of
from kafkalite.security.mechanisms import SCRAM_512
from kafkalite.security.scram import BY_NAME, MIN_ITERATIONS

if TYPE_CHECKING:
    from kafkalite.protocol.messages import AlterUserScramCredentialsResponse

ADMIN = "admin"
ENDING = ".secure"  # of the directory, behind the data's name
NAMES = ("localhost", "127.0.0.1", "::1")
SALT_BYTES = 16
_EVERYWHERE = ("", "0.0.0.0", "::")
_HERE = (*_EVERYWHERE, *NAMES)


@dataclass(slots=True, frozen=True)
class Secure:
    """The directory of one broker's keys."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def key(self) -> Path:
        return self.folder / "server.pem"

    @property
    def password(self) -> Path:
        return self.folder / "admin.password"

    @property
    def client(self) -> Path:
        """What Java's tools and kafkalite's are told."""
        return self.folder / "admin.properties"

    def settings(self, listen: str) -> dict[str, str]:
        return {
            "listeners": f"{SASL_SSL}://{listen}",
            "security.inter.broker.protocol": SASL_SSL,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key),
            "sasl.enabled.mechanisms": SCRAM_512,
            AUTHORIZER: STANDARD_AUTHORIZER,
            SUPER_USERS: f"User:{ADMIN}",
        }

    # --- keys -------------------------------------------------------------------------------------

    def prepare(self, host: str) -> None:
        """Makes what is not there; raises ClickException for what cannot be used."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_owner()
            self.folder.chmod(0o700)
            if not self.key.exists():
                self._make_keys(host)
            elif not self.ca.exists():
                raise click.ClickException(
                    f"{self.ca} is missing: put it back, or remove {self.key} as well, and a new "
                    "authority is made, which clients have to be given"
                )
        except OSError as error:
            why = f"{error.filename or self.folder}: {error.strerror}"
            raise click.ClickException(f"--secure keeps keys beside the data: {why}") from None

    def _check_owner(self) -> None:
        """Whoever has a directory, or made the link to it, reads and changes what is in it."""
        owners = {self.folder.lstat().st_uid, self.folder.stat().st_uid} - {os.geteuid()}
        if owners:
            raise click.ClickException(
                f"{self.folder} belongs to user {min(owners)}, who could read its keys: make it "
                "yours (chown), or choose another --data-dir"
            )

    def _make_keys(self, host: str) -> None:
        try:
            from kafkalite.security.authority import Authority, pem_of, utc_now
        except ImportError:
            raise click.ClickException(
                "--secure makes certificates with a library that is not installed: "
                "pip install 'kafkalite[security]'"
            ) from None
        authority = Authority("kafkalite", utc_now(time.time_ns() // 1_000_000))
        own = [socket.gethostname(), *([host] if host not in _EVERYWHERE else [])]
        issued = authority.issue("CN=kafkalite", list(dict.fromkeys((*NAMES, *own))))
        write_private(self.ca, pem_of(authority.root))
        write_private(self.key, issued.key_pem + issued.chain_pem)  # the last: with it all is there

    # --- the admin --------------------------------------------------------------------------------

    def add_admin(self, broker: Process) -> Later[InvalidSetting | None]:
        """Once it serves; filled when the admin can log in, or with why not."""
        scram = BY_NAME[SCRAM_512]
        try:
            is_there = (ADMIN, scram.number) in broker.metadata.image.scram
            if is_there and not self.password.exists():  # whoever took it away knows it
                return Later.of(None)
            password = self._password()
            write_private(self.client, self._told(password))
            if is_there:
                return Later.of(None)
        except InvalidSetting as error:
            return Later.of(error)
        except OSError as error:
            why = f"--secure: {error.filename}: {error.strerror}"
            return Later.of(InvalidSetting(why))
        salt = secrets.token_bytes(SALT_BYTES)
        upsertion = AlterUserScramCredentialsRequest.Upsertion(
            name=ADMIN, mechanism=scram.number, iterations=MIN_ITERATIONS, salt=salt,
            salted_password=scram.salted(password, salt, MIN_ITERATIONS),
        )  # fmt: skip
        request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
        return broker.controller.submit(AlterUserScramCredentials(request)).map(_refusal)

    def _password(self) -> str:
        if not self.password.exists():
            write_private(self.password, secrets.token_urlsafe())
        password = self.password.read_bytes().decode(errors="replace").strip()
        if not password or "\ufffd" in password:
            raise InvalidSetting(
                f"--secure: there is no password in {self.password}: put the admin's there, or "
                "remove it, and one is made for an admin who has none"
            )
        return password

    @property
    def way_in(self) -> dict[str, str]:
        """The settings of a client that has yet to say who it is."""
        return {
            "security.protocol": SASL_SSL,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "sasl.mechanism": SCRAM_512,
        }

    def _told(self, password: str) -> str:
        told = {**self.way_in, "sasl.jaas.config": jaas_of(SCRAM_512, ADMIN, password)}
        return as_properties(told)

    def examples(self, address: tuple[str, int]) -> str:
        """How clients come in, to copy and paste."""
        host, port = address
        where = f"{'localhost' if host in _HERE else host}:{port}"
        return _SAID.format(
            where=where, folder=self.folder, file=self.password, mechanism=SCRAM_512, admin=ADMIN,
            client=shlex.quote(str(self.client)), ca=repr(str(self.ca)),
            password=repr(str(self.password)),
        )  # fmt: skip


def beside(data_dir: str) -> Secure:
    return Secure(Path(os.path.abspath(data_dir) + ENDING))


def _refusal(answer: AlterUserScramCredentialsResponse | KafkaError) -> InvalidSetting | None:
    if isinstance(answer, KafkaError):
        return InvalidSetting(f"--secure: no user {ADMIN} can be made: {answer.message}")
    refused = [each.error_message or "refused" for each in answer.results if each.error_code]
    return InvalidSetting(f"--secure: {refused[0]}") if refused else None


_SAID = """\
  secured with TLS, logins ({mechanism}) and access rules; keys are in {folder}
  admin   {admin} may do everything; the password is in {file}, which you alone can read

  # kafkalite
  kafkalite produce -b {where} --command-config {client} greetings
  kafkalite consume -b {where} --command-config {client} greetings

  # Apache Kafka's tools, here a user with a right of its own
  kafka-configs.sh --bootstrap-server {where} --command-config {client} --alter \
--entity-type users --entity-name alice --add-config '{mechanism}=[password=alice-secret]'
  kafka-acls.sh --bootstrap-server {where} --command-config {client} --add \
--allow-principal User:alice --operation All --topic greetings

  # kafka-python
  KafkaProducer(bootstrap_servers="{where}", security_protocol="SASL_SSL", \
ssl_cafile={ca}, sasl_mechanism="{mechanism}", sasl_plain_username="{admin}", \
sasl_plain_password=open({password}).read())

"""
