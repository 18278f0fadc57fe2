#!/bin/bash
# What bitnami/kafka has for an entry point: scripts of the user's first, then the command.
if [ "$1" = /opt/bitnami/scripts/kafka/run.sh ] || [ "$1" = /run.sh ]; then
    for script in /docker-entrypoint-initdb.d/*.sh; do
        [ -r "$script" ] && bash "$script"
    done
    shift
    set -- /opt/bitnami/scripts/kafka/run.sh "$@"
fi
exec "$@"
