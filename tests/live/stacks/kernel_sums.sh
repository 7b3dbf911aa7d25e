#!/bin/bash
# Compares the off-CPU time that the kernel sums up with the program's own measurements: every switch is
# counted, times are right, every stack is complete.
. "$(dirname "$0")/../lib.sh"

run() {  # ARGUMENTS...
  local status
  "$PE_KERNEL/kernel_sums" "$@" >"$dir/out" 2>"$dir/err"
  status=$?
  [ "$status" != 77 ] || skip "$(sed -n 's/^skipped: //p' "$dir/out")"
  [ "$status" = 0 ] || fail "$*: $(tail -40 "$dir/err")"
  [ -z "${PE_VERBOSE:-}" ] || sed "s|^|$*: |" "$dir/out"
}
# field NAME NUMBER
field() { awk -v name="$1" -v n="$2" '$1 == name { print $n }' "$dir/out"; }

# A thread was off its CPU for its wall-clock time less its CPU time.  It cannot read both clocks and its
# number of switches at the same moment.  So the test allows two switches and a millisecond.  A virtual
# machine may hide switches to its own helpers; these are counted as missed.
# If the whole machine stops during a switch, that time counts both as on the CPU and as off it.  In this case
# the test measures again.
# A busy thread may be off its CPU for less time than this, because the host took the processor away or
# interrupts ran.  But of two threads on one CPU, one is always off it.
compare_threads() {  # LABEL THREADS
  awk -v label="$1" -v threads="$2" '
    $1 == "thread" { wall[$2] = $3; off[$2] = $3 - $4; switches[$2] = $5 }
    $1 == "sums" { sum[$2] = $3; counted[$2] = $4 }
    $1 == "missed" { missed = $2; missed_ns = $3 }
    function is_far(least, most, wanted, room) { return wanted < least - room || wanted > most + room }
    END {
      for (tid in off) {
        if (is_far(counted[tid], counted[tid] + missed, switches[tid], 2))
          print label ": " counted[tid] " switches, and " missed " missed, not " switches[tid]
        room = 0.005 * off[tid] + 1e6
        if (sum[tid] > off[tid] + room || (threads == 1 && sum[tid] + missed_ns < off[tid] - room))
          print label ": " sum[tid] " ns, and " missed_ns " missed, not " off[tid]
        all += sum[tid]
        if (!shortest || wall[tid] < shortest) shortest = wall[tid]
      }
      if (threads == 2 && all + missed_ns < 0.995 * shortest - 1e6)
        print label ": " all " ns, and " missed_ns " missed, of " shortest
    }' "$dir/out"
}

run_threads() {  # LABEL THREADS ARGUMENTS...
  local wrong said=''
  for _ in 1 2 3; do
    run "${@:3}"
    wrong=$(compare_threads "$1" "$2")
    [ -n "$wrong" ] || break
    said+=$wrong$'\n'
  done
  [ -z "$wrong" ] || fail "three times: $said"
  expect "$1: threads" "$2" "$(field sums 2 | wc -l)"
  # The entry code of the dynamic linker keeps its CFA in a register that the kernel does not follow.
  at_least "$1: complete stacks, of 10,000" 9999 "$(awk '$1 == "incomplete" { i = $2 } $1 == "sums" { n += $4 }
    END { print n ? 1e4 * (1 - i / n) : 0 }' "$dir/out")"
  expect "$1: lost" 0 "$(field lost 2)"
  expect "$1: wrong reuse" 0 "$(field wrong_reuse 2)"
}

run_threads sleep 1 "$PE_KERNEL/off_cpu" sleep 40 10
at_least 'sleep: stacks taken from the last ones' 35 "$(field reused 2)"
for option in '' --no-reuse --check-reuse; do
  # shellcheck disable=SC2086 # none, or one
  run_threads "ping_pong $option" 2 $option "$PE_KERNEL/off_cpu" ping_pong 100000
done

# Numbers of stacks from before a renewal are not used any more, and stacks of waits that it interrupts stay.
run_threads 'renewed' 2 --renew --kernel-stacks "$PE_KERNEL/off_cpu" ping_pong 100000
at_least 'renewed' 3 "$(field renewed 2)"
expect 'renewed: stacks in the kernel' "$(awk '$1 == "sums" { n += $4 } END { print n }' "$dir/out")" "$(field in_kernel 2)"
run_threads 'renewed during waits' 1 --renew "$PE_KERNEL/off_cpu" sleep 8 150
at_least 'renewed during waits' 16 "$(field renewed 2)"

run_threads 'kernel stacks' 1 --kernel-stacks "$PE_KERNEL/off_cpu" sleep 20 10
expect 'switches with the stack in the kernel' "$(field sums 4)" "$(field in_kernel 2)"
for option in '' --check-reuse; do
  # shellcheck disable=SC2086 # none, or one
  run_threads "kernel stacks $option" 2 --kernel-stacks $option "$PE_KERNEL/off_cpu" ping_pong 100000
  at_least "kernel stacks $option: taken from the last ones" 50000 "$(field kernel_reused 2)"
done

# The number of switches that the program counts, less two for the moments when it reads it: see above.
switches() { echo $(($(field thread 5) - 2)); }

# If there is no room for stacks, the kernel counts each lost stack, and still sums up the time.
run --no-room "$PE_KERNEL/off_cpu" sleep 20 10
at_least 'no room: stacks lost' "$(switches)" "$(field lost 2)"
at_least 'no room: switches' "$(switches)" $(($(field sums 4) + $(field missed 2)))

# If there is no room for sums, the kernel counts each switch with its time.  The first thread's sum uses the
# only place.
run --max-sums=1 "$PE_KERNEL/off_cpu" ping_pong 20000
counted=$(field sums 4 | awk '{ n += $1 } END { print n + 0 }')
at_least 'no room: switches without a sum' 9000 "$(field sums_full 2)"
at_least 'no room: switches in all' 19900 $((counted + $(field sums_full 2) + $(field missed 2)))
at_least 'no room: ns of all' "$(awk '$1 == "thread" { printf "%d", 0.98 * ($3 - $4) - 2e6; exit }' "$dir/out")" "$(field sums_full 3)"

# The kernel could not unwind some stacks, and could not hand them on either.  The sums still contain their
# switches.
run --no-tables "$PE_KERNEL/off_cpu" sleep 20 10
at_least 'not handed on' "$(switches)" "$(field ring_full 2)"
at_least 'not handed on: switches' "$(switches)" $(($(field sums 4) + $(field missed 2)))
expect 'not handed on: incomplete stacks' "$(field sums 4)" "$(field incomplete 2)"

# Shorter times are left out.  A thread's sleeps are longer than its other waits.
run --min-us=9000 "$PE_KERNEL/off_cpu" sleep 20 10
at_least 'minimum: sleeps' 18 $(($(field sums 4) + $(field missed 2)))
run --min-us=60000000 "$PE_KERNEL/off_cpu" sleep 20 10
expect 'minimum: sums' '' "$(field sums 4)"

# The tool reports a thread that still waits, and since when.  It has waited for 50 ms.
run "$PE_KERNEL/off_cpu" blocked
expect 'blocked threads' 2 "$(field outstanding 2)"
at_least 'blocked for, ns' 1000000 "$(field outstanding 3)"
finish
