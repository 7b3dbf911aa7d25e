#!/bin/bash
# A recording of perf, as a file and through a pipe, has the same hot stacks as ours.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip 'perf is not installed'
record_by_perf -N -e cpu-clock -F 997 -g -o "$dir/perf.data" -- "$PE_WORKLOAD" shares 1 2>"$dir/err" || fail "perf record: $(cat "$dir/err")"
record_by_perf -e cpu-clock -F 997 -g -o - -- "$PE_WORKLOAD" shares 1 >"$dir/perf.pipe" 2>/dev/null
pe-record -F 997 -o "$dir/our.pe" -- "$PE_WORKLOAD" shares 1 2>/dev/null
for input in perf.data perf.pipe our.pe; do
  pe-symbolize "$dir/$input" 2>"$dir/err" | stackfold >"$dir/$input.folded" 2>>"$dir/err"
  grep -E 'truncated|damaged|cut off|malformed' "$dir/err" && fail "$input: $(cat "$dir/err")"
  within "$input: fifty" 50 "$(share ';main;work;fifty' "$dir/$input.folded")" 5
  within "$input: thirty" 30 "$(share ';main;work;thirty' "$dir/$input.folded")" 5
  within "$input: twenty" 20 "$(share ';main;work;twenty' "$dir/$input.folded")" 5
done
expect 'samples of perf.data' "$(perf script -i "$dir/perf.data" -F tid 2>/dev/null | grep -c .)" \
  "$(awk '{ n += $NF } END { print n }' "$dir/perf.data.folded")"
pe-symbolize -q <"$dir/perf.data" | stackfold | cmp -s - "$dir/perf.data.folded" || fail 'perf.data through a pipe differs'
finish
