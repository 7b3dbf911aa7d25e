#!/bin/bash
# Twenty levels of recursion are twenty frames.
. "$(dirname "$0")/../lib.sh"
pe-record -F 997 -o "$dir/r.pe" -- "$PE_WORKLOAD" recursion 1 2>/dev/null
fold "$dir/r.pe" >"$dir/r.folded"
dives=$(printf ';dive%.0s' $(seq 20))
at_least 'stacks of main and twenty dives, %' 95 "$(share ";main$dives(;[^d].*)? [0-9]+\$" "$dir/r.folded")"
finish
