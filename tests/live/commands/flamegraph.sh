#!/bin/bash
# flamegraph makes a flame graph of a command in one line.
. "$(dirname "$0")/../lib.sh"
draw() { "$PE_SCRIPTS/flamegraph" "$@" >"$dir/out" 2>"$dir/err"; status=$?; }

draw -F 499 "$dir/a 'b'.svg" -- "$PE_WORKLOAD" shares 1
expect status 0 $status
xmllint --noout "$dir/a 'b'.svg" || fail 'not well-formed'
grep -q "<title>$PE_WORKLOAD shares 1" "$dir/a 'b'.svg" || grep -q "workload shares 1" "$dir/a 'b'.svg" || fail 'no title'
grep -qx "flamegraph: wrote $dir/a 'b'.svg" "$dir/err" || fail "closing line: $(cat "$dir/err")"
draw "$dir/b.svg" -- sh -c 'echo data; exit 3'
expect 'status of the command' 3 $status
expect 'output of the command' data "$(cat "$dir/out")"
draw "$dir/c.svg" -- "$dir/none"
expect 'a command that is not there' 127 $status
[ ! -e "$dir/c.svg" ] || fail 'a picture of nothing'
timeout -s INT 1.5 "$PE_SCRIPTS/flamegraph" "$dir/d.svg" -- "$PE_WORKLOAD" shares 60 2>/dev/null
xmllint --noout "$dir/d.svg" || fail 'Ctrl-C: no picture'
draw; expect 'no arguments' 2 $status
draw "$dir/e.svg"; expect 'no command' 2 $status
draw --no-such "$dir/e.svg" -- true; expect 'an unknown option' 2 $status
draw "$dir/no/folder.svg" -- true; expect 'a picture that cannot be written' 125 $status
"$PE_SCRIPTS/flamegraph" --help >/dev/full 2>/dev/null && fail 'a full disk looks like success'
finish
