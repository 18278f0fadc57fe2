"""What stands in a Kafka home: the scripts of its bin folder and its config files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

START = "kafka-server-start"
STOP = "kafka-server-stop"
RUN_CLASS = "kafka-run-class"

_HEAD = """#!/bin/sh
# Written by `kafkalite home`.
"""
_TOOL = """exec {python} -P -m kafkalite.tools {name} "$@"
"""
_BASE = """base=$(cd "$(dirname "$0")/.." && pwd)
"""
_START = """usage() {{
  echo "USAGE: $0 [-daemon] server.properties [--override property=value]*"
  exit 1
}}
[ $# -gt 0 ] || usage
daemon=no
[ "$1" = -daemon ] && {{ daemon=yes; shift; }}
[ $# -gt 0 ] || usage
file=$1
shift
for each in $KAFKA_OPTS; do
  case $each in
    -Djava.security.auth.login.config=*) set -- "$@" --login-file "${{each#*=}}" ;;
  esac
done
mkdir -p "$base/run"
if [ $daemon = no ]; then
  : > "$base/run/$$"
  exec {python} -P -m kafkalite serve --config "$file" "$@"
fi
logs=${{LOG_DIR:-$base/logs}}
mkdir -p "$logs"
nohup {python} -P -m kafkalite serve --config "$file" "$@" \\
  > "$logs/kafkaServer.out" 2>&1 < /dev/null &
: > "$base/run/$!"
"""
_STOP = """# Ends the servers that were started from this home, and no others.
found=no
for each in "$base"/run/*; do
  pid=${{each##*/}}
  case $(tr '\\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" || ps -p "$pid" -o args= 2>/dev/null) in
    *kafkalite*serve*) found=yes; kill -s "${{SIGNAL:-TERM}}" "$pid" ;;
  esac
  rm -f "$each"
done
[ $found = yes ] || {{ echo "No kafka server to stop"; exit 1; }}
"""
_RUN_CLASS = """daemon=
while [ $# -gt 0 ]; do
  case $1 in
    -name) shift 2 ;;
    -loggc) shift ;;
    -daemon) daemon=-daemon; shift ;;
    *) break ;;
  esac
done
if [ $# -eq 0 ]; then
  echo "USAGE: $0 [-daemon] [-name servicename] [-loggc] classname [opts]"
  exit 1
fi
class=$1
shift
[ "$class" = kafka.Kafka ] && exec "$base/bin/kafka-server-start.sh" $daemon "$@"
exec {python} -P -m kafkalite.tools "$class" "$@"
"""

_SERVER = """# One broker that is its own controller.
# `kafkalite config check` says which settings of a file like this take effect here.
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
"""
_CLIENT = "bootstrap.servers=localhost:9092\n"


def scripts(python: str, tools: list[str]) -> Iterator[tuple[str, str]]:
    """Each script by its name, which executes this Python."""
    quoted = shlex.quote(python)
    for name in tools:
        yield name, _HEAD + _TOOL.format(python=quoted, name=name)
    for name, text in ((START, _START), (STOP, _STOP), (RUN_CLASS, _RUN_CLASS)):
        yield name, _HEAD + _BASE + text.format(python=quoted)


def configs(data: str) -> dict[str, str]:
    """Each file of the config folder by its name."""
    return {
        "server.properties": _SERVER.format(data=data),
        "producer.properties": f"{_CLIENT}compression.type=none\n",
        "consumer.properties": f"{_CLIENT}group.id=test-consumer-group\n",
    }
