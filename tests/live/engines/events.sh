#!/bin/bash
# Records software events and tracepoints, with periods, and with parts of the stack.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'tracepoints need root'
samples() { fold "$1" | awk '{ n += $NF } END { print n + 0 }'; }

pe-record -e page-faults -c 1 -o "$dir/f.pe" -- "$PE_WORKLOAD" shares 0.1 2>/dev/null
at_least 'page faults' 50 "$(samples "$dir/f.pe")"

pe-record -c 10000000 -e cpu-clock -o "$dir/c.pe" -- "$PE_WORKLOAD" shares 1 2>/dev/null
# If others use the CPU, too, the number varies by its square root; the test allows five times that.
within 'a sample every 10 ms' 100 "$(samples "$dir/c.pe")" 50

mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
pe-record -e sched:sched_process_exit -o "$dir/t.pe" -- sh -c 'true; /bin/true; /bin/true' 2>"$dir/err" || fail "tracepoint: $(cat "$dir/err")"
expect 'processes that ended' 3 "$(samples "$dir/t.pe")"

pe-record -F 997 -e cpu-clock,page-faults -o "$dir/two.pe" -- "$PE_WORKLOAD" shares 0.3 2>/dev/null
stackfold "$dir/two.pe" >/dev/null 2>"$dir/err"
grep -q 'of other events left out (folded: cpu-clock' "$dir/err" || fail "two events: $(cat "$dir/err")"
stackfold --event page-faults "$dir/two.pe" >"$dir/two.folded" 2>/dev/null
[ -s "$dir/two.folded" ] || fail 'two events: nothing of the second'

pe-record -F 997 --user-only -o "$dir/u.pe" -- dd if=/dev/zero of=/dev/null bs=1M count=4000 2>/dev/null
fold "$dir/u.pe" --annotate >"$dir/u.folded"
expect 'kernel frames with --user-only, %' 0.0 "$(share '_\[k\]' "$dir/u.folded")"
pe-record -F 997 --kernel-only -o "$dir/k.pe" -- dd if=/dev/zero of=/dev/null bs=1M count=4000 2>/dev/null
fold "$dir/k.pe" --annotate >"$dir/k.folded"
expect 'stacks of kernel frames with --kernel-only, %' 100.0 "$(share '^dd;[^ ]*_\[k\] ' "$dir/k.folded")"
grep -q 'read_zero_\[k\]\|clear_user' "$dir/k.folded" || fail 'the kernel has no names'
pe-record -F 997 --call-graph none -o "$dir/n.pe" -- "$PE_WORKLOAD" shares 0.3 2>/dev/null
expect 'frames with --call-graph none' 2 "$(pe-symbolize -q --no-inline "$dir/n.pe" | stackfold | awk '{ n = gsub(/;/, ";") + 1; if (n > m) m = n } END { print m }')"

most=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
pe-record -F $((most + 1)) -o "$dir/x.pe" -- true 2>"$dir/err"
grep -q "sampling at $most Hz" "$dir/err" || fail "over the maximum: $(cat "$dir/err")"
grep -q 'above 1000 Hz' "$dir/err" || fail "no warning about the overhead: $(cat "$dir/err")"
finish
