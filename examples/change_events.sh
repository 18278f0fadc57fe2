#!/bin/sh
# Change events of a database, in Debezium's envelopes, kept up as a table: a row for each key that
# is there, and none for those that were deleted. Started again it goes on where it was.
#
#     sh examples/change_events.sh shop.customers lake/customers 'id BIGINT, name STRING'
set -eu
topic=$1 table=$2 columns=$3

kafkalite pipeline snapshot "$topic" --follow --envelope debezium --path "$table" \
    --value-format json --value-schema "$columns"
