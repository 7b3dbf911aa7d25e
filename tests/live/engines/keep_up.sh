#!/bin/bash
# Every CPU is busy in stacks of 60 KiB, unwound while they are recorded: each sample is there, complete, or counted.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
program_of o2 || finish

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
  check_cases "at_$hz" "$dir/$hz.pe" $(((hz * 3) - lost)) thread=60
}

# Whether any are lost depends on the machine (tests/bench): all are there or counted.
record_at 997
record_at 4999
finish
