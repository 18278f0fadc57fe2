#!/bin/sh
# Topics and groups from one cluster to another, and back, consumers moving along.
#
#     sh examples/migration.sh copy OLD NEW state orders billing    as often as you like, while all goes on
#     … stop producers and consumers
#     sh examples/migration.sh move OLD NEW state orders billing    the rest; NEW is theirs from here on
#     … start them at NEW; and if it was not to be, stop them again
#     sh examples/migration.sh back OLD NEW state orders billing    what NEW got since, to OLD
#     … start them at OLD
#
# A group goes on at the record behind its last one. Each step may be started again. `back` waits for
# nobody: it ends with 1 while the group has not read at NEW what was there when it moved.
set -eu
step=$1 old=$2 new=$3 state=$4 topic=$5 group=$6
mkdir -p "$state"

copy() {
    kafkalite pipeline mirror "$topic" -b "$old" --to-bootstrap-servers "$new" \
        --checkpoint "$state/there" --group "$group"
}

# Where the topic ends at NEW, as Spark's source wants it.
ends_there() {
    kafkalite topic describe "$topic" -b "$new" --output json | python3 -c '
import json, sys
rows = json.load(sys.stdin)
print(json.dumps({rows[0]["topic"]: {str(row["partition"]): row["ends"] for row in rows}}))'
}

# What the group left unread of before the move has no place at OLD that `back` could tell.
caught_up() {
    kafkalite group describe "$group" -b "$new" --output json | python3 -c '
import json, sys
moved = json.load(open(sys.argv[1]))
for row in json.load(sys.stdin)[0]["partitions"]:
    until = moved.get(row["topic"], {}).get(str(row["partition"]), 0)
    if row["committed"] < until:
        sys.exit("{topic}-{partition}: read up to {committed} at the new cluster".format(**row) + f", {until} first")
' "$state/moved"
}

case $step in
copy)
    copy
    ;;
move)
    copy
    # Only what comes from here on has to go back. Noted once, though this step may run twice.
    test -e "$state/moved" || { ends_there >"$state/moved.new" && mv "$state/moved.new" "$state/moved"; }
    ;;
back)
    caught_up
    # The topic at OLD holds records that this checkpoint did not write: they are why it is there.
    kafkalite pipeline mirror "$topic" -b "$new" --to-bootstrap-servers "$old" \
        --checkpoint "$state/back" --group "$group" --adopt \
        --option startingOffsets="$(cat "$state/moved")"
    ;;
*)
    echo "copy, move or back, not $step" >&2
    exit 2
    ;;
esac
