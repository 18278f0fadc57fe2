#!/bin/sh
# Records that do not fit are set aside; after a fix all of them come back, each once.
#
#     sh examples/dead_letters.sh check orders state 'id INT'      each night: what does not fit to orders.dead
#     sh examples/dead_letters.sh again orders state 'id BIGINT'   after a fix: orders.dead to orders.again,
#                                                                  and what does not fit yet to orders.still-dead
#
# Each step may be started again, also after `kill -9`: no record is moved twice.
set -eu
step=$1 topic=$2 state=$3 schema=$4

# Sends what does not fit the schema from one topic to another.
sort_out() {
    kafkalite topic create "$2" --if-not-exists -b "${KAFKALITE_BOOTSTRAP_SERVERS:-localhost:9092}"
    kafkalite pipeline dlq "$1" --dead-letters "$2" --checkpoint "$3" \
        --value-format json --value-schema "$schema"
}

case $step in
check)
    sort_out "$topic" "$topic.dead" "$state/check"
    ;;
again)
    kafkalite topic create "$topic.again" --if-not-exists \
        -b "${KAFKALITE_BOOTSTRAP_SERVERS:-localhost:9092}"
    kafkalite pipeline replay "$topic.dead" --to "$topic.again" --state "$state/again"
    sort_out "$topic.again" "$topic.still-dead" "$state/still-dead"
    ;;
*)
    echo "check or again, not $step" >&2
    exit 2
    ;;
esac
