#!/bin/bash
# Waits of threads: each has the time that the program measured, and a stack from main() on, without frame
# pointers.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
root=${main_root%;run_case;}

# waited PATTERN FILE: prints the microseconds of the matching stacks
waited() { PATTERN=$1 awk '$0 ~ ENVIRON["PATTERN"] { n += $NF } END { print n + 0 }' "$2"; }

# check_wait LABEL FILE PATTERN: compares with the program's own measurement, within 2 % and a millisecond for
# each wait
check_wait() {
  local said got
  said=$(awk -v c="$1" '$1 == c { print $2 }' "$dir/said") got=$(waited "$3" "$2")
  within "$1: microseconds" "$said" "$got" $((said / 50 + 10000))
  expect "$1: outside of whole stacks, microseconds" 0 $((got - $(waited "^waits;$root$3" "$2")))
}

# Without privileges for eBPF, or without a compiler for it, there is only one engine, and offcpu reports
# this.
offcpu --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>"$dir/why"
case $? in
  0) engines='perf bpf' ;;
  *) grep -q '^offcpu: --engine bpf: eBPF: ' "$dir/why" || fail "bpf says: $(cat "$dir/why")"
     echo "perf engine only: $(cat "$dir/why")"
     engines=perf ;;
esac

run_engine() {  # uses $engine
  local failed_before=$failed
  engine_offcpu() { offcpu -v --engine "$engine" "$@"; }
  # The program's own measurement includes the time in which a thread is ready but another has its CPU.
  engine_offcpu --preempted -o "$dir/w.pe" -- "$PE_WAITS" nanosleep poll read mutex condition dlopen >"$dir/said" 2>"$dir/err"
  expect 'status' 0 $?
  fold "$dir/w.pe" >"$dir/w.folded"
  check_wait nanosleep "$dir/w.folded" ';[^;]*nanosleep_case;([^;]+;)?wait_in_nanosleep[; ]'
  check_wait poll "$dir/w.folded" ';[^;]*poll_case;([^;]+;)?wait_in_poll[; ]'
  check_wait read "$dir/w.folded" ';[^;]*read_case;([^;]+;)?wait_in_read[; ]'
  check_wait mutex "$dir/w.folded" ';[^;]*mutex_case;([^;]+;)?wait_for_mutex[; ]'
  check_wait condition "$dir/w.folded" ';[^;]*condition_case;([^;]+;)?wait_for_condition[; ]'
  check_wait dlopen "$dir/w.folded" ';[^;]*dlopen_case;([^;]+;)?call_from_library;wait_in_nanosleep[; ]'
  grep -qE '^offcpu: [0-9]+ waits in [0-9.]+ s, [0-9.]+ s waited, 0 lost, [0-9.]+ % of stacks complete' "$dir/err" ||
    fail "closing line: $(cat "$dir/err")"
  [ "$failed" = 0 ] || { cat "$dir/said" "$dir/err"; cut -c1-300 "$dir/w.folded"; }

  # Voluntary waits only: not less than the program slept, and not more than with the other waits.
  engine_offcpu --min-us 20000 -o "$dir/v.pe" -- "$PE_WAITS" nanosleep >"$dir/said" 2>"$dir/err"
  fold "$dir/v.pe" >"$dir/v.folded"
  at_least 'ten naps of 40 ms' 400000 "$(waited ';wait_in_nanosleep[; ]' "$dir/v.folded")"
  expect 'short waits with --min-us' 0 "$(waited ';(exit|_dl_[^;]*)[; ]' "$dir/v.folded")"
  expect 'waits of 20 ms and more' 10 "$(grep -oE '[0-9]+ waits' "$dir/err" | cut -d' ' -f1)"
  engine_offcpu --max-us 20000 -o "$dir/x.pe" -- "$PE_WAITS" nanosleep >/dev/null 2>&1
  expect 'naps with --max-us' 0 "$(waited ';wait_in_nanosleep[; ]' <(fold "$dir/x.pe"))"

  # With kernel frames, or with the program's frames only.
  grep -q ';wait_in_nanosleep;.*do_nanosleep' "$dir/v.folded" || fail "no kernel frames: $(tail -1 "$dir/v.folded")"
  engine_offcpu --user-only --min-us 20000 -o "$dir/u.pe" -- "$PE_WAITS" nanosleep >/dev/null 2>&1
  fold "$dir/u.pe" --annotate >"$dir/u.folded"
  at_least 'naps with --user-only' 400000 "$(waited ';wait_in_nanosleep[;_ ]' "$dir/u.folded")"
  expect 'kernel frames with --user-only' 0 "$(waited '_\[k\]' "$dir/u.folded")"
  engine_offcpu --kernel-only --min-us 20000 -o "$dir/k.pe" -- "$PE_WAITS" nanosleep >/dev/null 2>&1
  fold "$dir/k.pe" >"$dir/k.folded"
  at_least 'naps with --kernel-only' 400000 "$(waited '^waits;entry_SYSCALL[^;]*;.*nanosleep' "$dir/k.folded")"
  expect 'program frames with --kernel-only' 0 "$(waited ';main;' "$dir/k.folded")"

  # States, by the scheduler's tracepoint.
  if [ -r /sys/kernel/tracing/events/sched/sched_switch/format ]; then
    engine_offcpu --state S --min-us 20000 -o "$dir/s.pe" -- "$PE_WAITS" nanosleep >/dev/null 2>&1
    at_least 'naps that can be interrupted' 400000 "$(waited ';wait_in_nanosleep[; ]' <(fold "$dir/s.pe"))"
    engine_offcpu --state D,R -o "$dir/d.pe" -- "$PE_WAITS" nanosleep >/dev/null 2>&1
    at_least 'naps that cannot, microseconds at most' "$(waited ';do_nanosleep[; ]' <(fold "$dir/d.pe"))" 20000
  fi
  [ "$failed" = "$failed_before" ] || echo "that was the $engine engine"
}
for engine in $engines; do run_engine; done

# The whole pipeline draws a flame graph.
offcpu -q -- "$PE_WAITS" nanosleep 2>/dev/null | pe-symbolize -q | stackfold |
  flamesvg --colors io --countname us >"$dir/offcpu.svg"
grep -q '<title>[^<]*wait_in_nanosleep ([0-9,]* us, ' "$dir/offcpu.svg" || fail 'no wait in the picture'
finish
