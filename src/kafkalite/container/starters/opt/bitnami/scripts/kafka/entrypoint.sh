#!/bin/bash
# What bitnami/kafka has for an entry point: runs the command.
if [ "$1" = /run.sh ]; then
    shift
    set -- /opt/bitnami/scripts/kafka/run.sh "$@"
fi
exec "$@"
