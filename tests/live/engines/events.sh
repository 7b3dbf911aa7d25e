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

# Modifiers select user or kernel code.
copy_zeros() { pe-record -q -F 997 "$@" -- dd if=/dev/zero of=/dev/null bs=1M count=4000 2>"$dir/err"; }
for event in cpu-clock task-clock; do
  copy_zeros -e $event:k -o "$dir/k.pe" || fail "$event:k: $(cat "$dir/err")"
  at_least "$event:k: samples in the kernel, %" 100 "$(fold "$dir/k.pe" --annotate | share '_\[k\] ' /dev/stdin)"
  pe-record -q -F 997 -e $event:u -o "$dir/u.pe" -- "$PE_WORKLOAD" shares 0.3 || fail "$event:u"
  expect "$event:u: samples in the kernel, %" 0.0 "$(fold "$dir/u.pe" --annotate | share '_\[k\]' /dev/stdin)"
  expect "$event:u: its name" "$event:u" "$(perf script -i "$dir/u.pe" -F event -G 2>/dev/null | sed 's/ //g; s/:$//' | sort -u)"
done

# Without hardware counters, the CPU's clock replaces cycles, with the same modifiers.
pe-record -e cycles:up -o "$dir/c.pe" -- "$PE_WORKLOAD" shares 0.3 2>"$dir/err" || fail "cycles:up: $(cat "$dir/err")"
at_least 'cycles:up: samples' 1 "$(fold "$dir/c.pe" | awk '{ n += $NF } END { print n + 0 }')"
expect 'cycles:up: samples in the kernel, %' 0.0 "$(fold "$dir/c.pe" --annotate | share '_\[k\]' /dev/stdin)"
if grep -q 'no hardware counters' "$dir/err"; then
  grep -qx 'pe-record: no hardware counters here: sampling cpu-clock:u' "$dir/err" || fail "cycles:up: $(cat "$dir/err")"
fi

# Events that cannot be recorded are refused with the reason, in one line.
refused() {  # EVENT MESSAGE
  pe-record -e "$1" -o "$dir/none.pe" -- true 2>"$dir/err" && fail "$1: recorded"
  expect "$1" "pe-record: $2" "$(cat "$dir/err")"
}
refused task-clok "--event: no such event: 'task-clok'; did you mean task-clock? (see --help)"
refused cycles:x "--event: 'cycles:x': no such modifiers: 'x': use u, k, h, and p up to three times (see --help)"
refused nosuch:u "--event: no such event: 'nosuch'; perf list shows all (see --help)"
refused sched:no_such 'sched:no_such: no such tracepoint in /sys/kernel/tracing/events'
if [ -e /sys/bus/event_source/devices/msr/events/tsc ]; then
  refused msr/tsc/ "--event: msr/tsc/: the kernel counts this event, but cannot sample it: use perf stat"
  refused msr/event=0xff/ "--event: msr/event=0xff/: refused by the kernel: check its terms (see perf list)"
  refused msr/tscc/ "--event: msr/tscc/: the PMU has no term or event 'tscc'; did you mean tsc? (see --help)"
fi

# A command is sampled at 997 Hz, unless the kernel's maximum is lower; what runs already, at 99 Hz.
pe-record -q -o "$dir/d.pe" -- "$PE_WORKLOAD" shares 0.3
at_least 'samples of a command' 150 "$(samples "$dir/d.pe")"

most=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
pe-record -F max -o "$dir/x.pe" -- true 2>"$dir/err"
grep -q "^pe-record: $most Hz: above 1000 Hz" "$dir/err" || fail "the maximum: $(cat "$dir/err")"
pe-record -F $((most + 1)) -o "$dir/x.pe" -- true 2>"$dir/err"
grep -q "sampling at $most Hz" "$dir/err" || fail "over the maximum: $(cat "$dir/err")"
grep -q 'above 1000 Hz' "$dir/err" || fail "no warning about the overhead: $(cat "$dir/err")"
finish
