#!/bin/bash
exec /etc/kafka/docker/run "$@"
