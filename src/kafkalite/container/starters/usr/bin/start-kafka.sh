#!/bin/bash
# What wurstmeister/kafka starts.
exec /etc/kafka/docker/run "$@"
