#!/bin/sh
# The jobs of a night, for cron or a task of Airflow. It may be started again after any end, and by
# two schedulers at once: each record is in the table once, and each bad one once among the dead.
#
#     sh examples/nightly.sh orders lake 'id BIGINT, amount DOUBLE'
#
# Ends with 0 when all is done and proven; with 75 ("try again later") when another run has a job in
# hand, or a signal came; with 3 when records are lost or twice, which somebody has to look at.
set -eu
topic=$1 lake=$2 schema=$3
journal=$lake/nightly.jsonl
mkdir -p "$lake"

# Runs a job, and keeps its account: a line of JSON, whatever became of it.
job() {
    echo "$(date -u +%H:%M:%S) $*"
    code=0
    kafkalite pipeline "$@" --ledger json --progress line >"$lake/ledger.$$" || code=$?
    cat "$lake/ledger.$$" >>"$journal"
    rm "$lake/ledger.$$"
    case $code in
    0) ;;
    4 | 5) exit 75 ;;
    *) exit "$code" ;;
    esac
}

kafkalite topic create "$topic.dead" --if-not-exists \
    -b "${KAFKALITE_BOOTSTRAP_SERVERS:-localhost:9092}"
job to-lake "$topic" --path "$lake/$topic" --value-format json --value-schema "$schema"
job audit "$topic" --path "$lake/$topic"
job dlq "$topic" --dead-letters "$topic.dead" --checkpoint "$lake/dlq" \
    --value-format json --value-schema "$schema" --max-error-rate 0.5
