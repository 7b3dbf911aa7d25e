#!/bin/bash
# The recorder keeps up with every CPU busy in stacks of 60 KiB, unwinding while it records; what it loses is counted.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/stacks_lib.sh"
program_of o2 || finish
lost_percent=100

# lost_of FILE: samples and lost ones, of the closing line
lost_of() { sed -nE 's/^pe-record: ([0-9]+) samples, ([0-9]+) lost.*/\1 \2/p' "$1"; }

# Three threads on two CPUs or more; 2 s of CPU time each.
record_at() {  # HZ
  local hz=$1 samples lost
  pe-record -F "$hz" -o "$dir/$hz.pe" -- "$program" 2000 thread=60 2>"$dir/$hz.err" || fail "$hz Hz: $(cat "$dir/$hz.err")"
  [ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/$hz.err"
  read -r samples lost <<<"$(lost_of "$dir/$hz.err")"
  [ -n "${lost:-}" ] || { fail "$hz Hz: no closing line: $(cat "$dir/$hz.err")"; return; }
  # A machine that is busy besides takes fewer samples of a thread's CPU time only where it stops the clock.
  at_least "$hz Hz: samples" $((hz * 3)) $((samples + lost))
  lost_percent=$(awk -v l="$lost" -v s="$samples" 'BEGIN { printf "%.2f", 100 * l / (s + l) }')
  check_cases "at_$hz" "$dir/$hz.pe" $(((hz * 3) - lost)) thread=60
}

# A recorder that gets no CPU for a while, because others have them, must lose; one that gets its share must not.
keeps_up() {  # HZ MOST
  local said=''
  for _ in 1 2 3 4 5; do
    record_at "$1"
    awk -v l="$lost_percent" -v most="$2" 'BEGIN { exit !(l <= most) }' && return
    said+=" $lost_percent %"
  done
  fail "lost at $1 Hz, each of five times:$said"
}
keeps_up 997 0
# At 600 MB of copies a second it depends on the machine whether any are lost (tests/bench): all are there or counted.
record_at 4999
finish
