#!/bin/bash
# A folder of `perf record --threads` is read as a whole: perf's threads write their samples to data.0, data.1 and so on.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip 'perf is not installed'
perf record -h 2>&1 | grep -q -- '--threads' || skip 'this perf has no record --threads'
record_by_perf --threads -e cpu-clock -F 997 -g -o "$dir/folder" -- "$PE_WORKLOAD" shares 1 2>"$dir/err" || fail "perf record: $(cat "$dir/err")"
[ -e "$dir/folder/data.0" ] || skip 'perf has written a single file'
wanted=$(perf script -i "$dir/folder" -F tid 2>/dev/null | grep -c .)
at_least 'samples that perf prints' 100 "$wanted"
for input in folder folder/data; do
  pe-symbolize "$dir/$input" 2>"$dir/err" | stackfold >"$dir/folded" 2>>"$dir/err"
  expect "$input: samples" "$wanted" "$(awk '{ n += $NF } END { print n + 0 }' "$dir/folded")"
  within "$input: fifty" 50 "$(share ';main;work;fifty' "$dir/folded")" 8
done
"$PE_SCRIPTS/stackpipe" top "$dir/folder" 2>"$dir/err" >"$dir/top" || fail "top: $(cat "$dir/err")"
grep -q fifty "$dir/top" || fail "top: $(cat "$dir/top")"

# The file alone has no samples, and is not taken for a whole recording.
cp "$dir/folder/data" "$dir/alone"
pe-symbolize "$dir/alone" >"$dir/out" 2>"$dir/err"; expect 'the file alone' 1 $?
grep -q 'its samples are in the files data.0, data.1 ..., which are not beside it: give the folder that perf record --threads wrote' "$dir/err" ||
  fail "the file alone: $(cat "$dir/err")"
mkdir "$dir/empty"
pe-symbolize "$dir/empty" >"$dir/out" 2>"$dir/err"; expect 'an empty folder' 1 $?
expect 'an empty folder' "pe-symbolize: $dir/empty: Is a directory" "$(cat "$dir/err")"
finish
