#!/bin/bash
# offcpu --wakers reports which thread, process or interrupt ended each wait, with complete stacks.
. "$(dirname "$0")/../lib.sh"

offcpu --wakers -o "$dir/try.pe" -- sleep 0.1 2>"$dir/why" || {
  grep -q '^offcpu: --wakers needs the bpf engine: ' "$dir/why" || fail "says: $(cat "$dir/why")"
  [ "$failed" = 0 ] || finish
  skip "no eBPF here: $(cat "$dir/why")"
}

# woken_by WAITER WAKER FILE: prints the microseconds of waits below function WAITER that were ended below
# function WAKER
woken_by() {
  WAITER=$1 WAKER=$2 awk '{
    at = index($0, ";--;")
    waiter = substr($0, 1, at) ";"; waker = substr($0, at + 3); sub(/ [0-9]+$/, ";", waker)
    if (at && waiter ~ ENVIRON["WAITER"] && waker ~ ENVIRON["WAKER"]) n += $NF
  } END { print n + 0 }' "$3"
}

offcpu --wakers -o "$dir/w.pe" -- "$PE_WAITS" nanosleep read mutex condition >"$dir/said" 2>"$dir/err"
expect 'status' 0 $?
fold "$dir/w.pe" >"$dir/w.folded"
# There are ten waits of 40 ms each.  If the machine stops, a reader may find its data without waiting.
at_least 'read, ended by the writing thread' 300000 \
  "$(woken_by ';wait_in_read;' '^;.*write;.*write_slowly;start_thread;_*clone3;waits;(--;.*)?$' "$dir/w.folded")"
at_least 'a mutex, by who held it' 300000 \
  "$(woken_by ';wait_for_mutex;' '^;.*unlock.*;[^;]*hold_mutex;start_thread;_*clone3;waits;(--;.*)?$' "$dir/w.folded")"
at_least 'a condition, by who signals it' 300000 \
  "$(woken_by ';wait_for_condition;' '^;.*pthread_cond_signal[^;]*;[^;]*signal_condition;start_thread;_*clone3;waits;(--;.*)?$' "$dir/w.folded")"
at_least 'a nap, by an interrupt' 300000 \
  "$(woken_by ';wait_in_nanosleep;' '^;.*hrtimer_wakeup;.*asm_sysvec_apic_timer_interrupt;\[interrupt\];$' "$dir/w.folded")"
at_least 'a mutex, by who held it, which took a nap' 300000 \
  "$(woken_by ';wait_for_mutex;' ';[^;]*hold_mutex;start_thread;_*clone3;waits;--;.*hrtimer_wakeup;.*\[interrupt\];$' "$dir/w.folded")"
expect 'naps that a thread has ended' 0 "$(woken_by ';wait_in_nanosleep;' ';waits;$' "$dir/w.folded")"
[ "$failed" = 0 ] || { cat "$dir/said" "$dir/err"; cut -c1-600 "$dir/w.folded"; }

# The waits are the same as without wakers; the wakers can also be shown alone.
total() { awk '{ n += $NF } END { print n }'; }
fold "$dir/w.pe" --event offcpu-waker >"$dir/wakers.folded"
# Each line is rounded to whole microseconds.
within 'time of wakers and waits' "$(total <"$dir/wakers.folded")" "$(grep -F ';--;' "$dir/w.folded" | total)" \
  "$(grep -c . "$dir/w.folded")"
at_least 'the writing thread alone' 300000 "$(awk '/;write_slowly;|;.*::write_slowly;/ { n += $NF } END { print n }' "$dir/wakers.folded")"
expect 'separators among wakers' 0 "$(grep -c -F ';--;' "$dir/wakers.folded")"

# The waker is a process that is not recorded.
mkfifo "$dir/pipe"
offcpu --wakers --user-only -o "$dir/o.pe" -- cat "$dir/pipe" >"$dir/cat.out" 2>"$dir/err" &
recorder=$!
exec 7>"$dir/pipe"  # returns when cat has opened it
sleep 0.3
"$PE_WAITS" >/dev/null  # not a target, so it is not recorded
(exec -a other_writer bash -c 'echo x >&7; sleep 0.2; echo x >&7')
exec 7>&-
wait "$recorder"
expect 'status of cat' 0 $?
fold "$dir/o.pe" --annotate >"$dir/o.folded"
at_least 'cat, woken by another process' 200000 "$(woken_by '^cat;' ';(other_writer|bash);$' "$dir/o.folded")"
expect 'waits of others' 0 "$(grep -vc -e '^cat;' -e '^# ' "$dir/o.folded")"
expect 'kernel frames with --user-only' 0 "$(grep -c '_\[k\]' "$dir/o.folded")"
[ "$failed" = 0 ] || { cat "$dir/err"; cut -c1-600 "$dir/o.folded"; }

if command -v perf >/dev/null; then
  perf script -i "$dir/w.pe" >"$dir/script" 2>"$dir/perf.err" || fail "perf script: $(head -3 "$dir/perf.err")"
  grep -q 'offcpu-waker:' "$dir/script" || fail 'perf sees no wakers'
fi

flamesvg --colors chain --countname us "$dir/w.folded" >"$dir/w.svg"
grep -q '<title>[^<]*hold_mutex[^<]* ([0-9,]* us, ' "$dir/w.svg" || fail 'no waker in the picture'
finish
