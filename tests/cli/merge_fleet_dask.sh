#!/bin/bash
# merge_fleet on a Dask cluster writes the same bytes as one process, also if a worker ends in the middle.
. "$(dirname "$0")/../live/lib.sh"
. "$(dirname "$0")/fleet_lib.sh"
command -v zstd >/dev/null || skip "no zstd here"
has_dask || skip "no python3-distributed here"
make_fleet
merge --dask 127.0.0.1:1 -j 2 host-11; expect '--dask and --jobs: status' 2 "$status"
merge --dask nonsense://127.0.0.1:1 host-11; expect '--dask nonsense://: status' 2 "$status"
# Dask itself would try for 30 s, and report a timeout.
merge --dask tcp://127.0.0.1:1 host-11; refused 'a refused connection' 'no scheduler: Connection refused'
PATH=$dir/bin:$PATH:$PE_SCRIPTS start_cluster "$dir/dask" 4

merge --dask "$cluster" -- "${names[@]}"; same 'four workers'
merge --dask "$cluster" --stats --fan-in 3 -- "${names[@]}"
grep -q "^merge_fleet: 29 files: read [0-9]* lines, a count of 13835058.*; wrote $(wc -l <"$dir/want") stacks$" "$dir/err" || fail "--stats: $(cat "$dir/err")"
cmp -s "$dir/want" "$dir/out" || fail 'a tree of four levels: the output differs'
[ ! -e pwned ] || fail 'a name was run'

# Incomplete input must not look complete.
cp host-17.gz "$dir/whole"; truncate -s -3 host-17.gz
merge --dask "$cluster" --fan-in 12 -- "${names[@]}" 'not there'; refused 'incomplete' 'host-17.gz'; empty incomplete
grep -q 'not there: No such file' "$dir/err" || fail "a missing file: $(cat "$dir/err")"
cp "$dir/whole" host-17.gz

# A worker ends after a merge of sums has written a part of its output.  No part of it counts, and sums that the worker
# had are merged again.
block_first "$dir/bin/stackfold" "$dir/hosts"
"$tool" --dask "$cluster" --fan-in 3 -- "${names[@]}" >"$dir/out" 2>"$dir/err" </dev/null & merging=$!
read -r sleeper <"$begun"
worker=$(parent_of "$(parent_of "$sleeper")")
case $(tr '\0' ' ' <"/proc/$worker/cmdline") in *dask_worker*) kill -9 "$worker" ;; *) fail 'no worker is above the merge' ;; esac
kill "$sleeper"
wait "$merging"; status=$?
same 'a worker ends'

# merge_fleet is asked to end.
block_first "$dir/bin/stackfold"
"$tool" --dask "$cluster" --fan-in 3 -- "${names[@]}" >"$dir/out" 2>"$dir/err" </dev/null & merging=$!
read -r sleeper <"$begun"
kill "$merging"; wait "$merging"; expect 'asked to end' 143 $?
left 'asked to end'
kill "$sleeper"
finish
