#!/bin/bash
# What wurstmeister/kafka starts; commands of the user's say the host's name and prepare the rest.
if [ -n "$HOSTNAME_COMMAND" ] && [ -z "$KAFKA_ADVERTISED_HOST_NAME" ]; then
    KAFKA_ADVERTISED_HOST_NAME=$(eval "$HOSTNAME_COMMAND")
    export KAFKA_ADVERTISED_HOST_NAME
fi
[ -n "$CUSTOM_INIT_SCRIPT" ] && eval "$CUSTOM_INIT_SCRIPT"
exec /etc/kafka/docker/run "$@"
