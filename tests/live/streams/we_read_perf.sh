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

# The field of a tracepoint as the weight, from a file and from a pipe.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || :
[ -r /sys/kernel/tracing/events/syscalls ] || { echo 'no tracepoints of system calls here'; finish; }
sum() { pe-symbolize -q | stackfold --weight "$1" 2>"$dir/err" | awk '{ n += $NF } END { print n + 0 }'; }
for output in "$dir/fields.data" -; do
  record_by_perf -e cpu-clock -e syscalls:sys_exit_write --filter 'ret == 1000' -g -o "$output" -- \
    dd if=/dev/zero of=/dev/null bs=1000 count=50 2>/dev/null >"$dir/fields.pipe"
done
for input in fields.data fields.pipe; do
  expect "$input: bytes written" 50000 "$(sum ret <"$dir/$input")"
  sum nothing <"$dir/$input" >/dev/null
  grep -qE "no field 'nothing'; (only|its fields are)" "$dir/err" || fail "$input: an unknown field: $(cat "$dir/err")"
done
finish
