#!/bin/bash
# Every CPU runs stacks of 60 KiB, which are unwound while they are recorded.  Each sample is there and
# complete, or is counted as lost.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
program_of o2 || finish

# lost_of FILE: prints samples and lost samples from the closing line
lost_of() { sed -nE 's/^pe-record: ([0-9]+) samples in [0-9.]+ s, ([0-9]+) lost.*/\1 \2/p' "$1"; }

# Three threads share two CPUs or more; each uses 1 s of CPU time.
record_at() {  # HZ
  local hz=$1 samples lost
  pe-record -F "$hz" -o "$dir/$hz.pe" -- "$program" 1000 thread=60 2>"$dir/$hz.err" || fail "$hz Hz: $(cat "$dir/$hz.err")"
  [ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/$hz.err"
  read -r samples lost <<<"$(lost_of "$dir/$hz.err")"
  [ -n "${lost:-}" ] || { fail "$hz Hz: no closing line: $(cat "$dir/$hz.err")"; return; }
  # Other programs do not reduce the samples of a thread's CPU time, unless the host stops the clock.
  at_least "$hz Hz: samples" $((hz * 3 / 2)) $((samples + lost))
  check_cases "at_$hz" "$dir/$hz.pe" $(((hz * 3 / 2) - lost)) thread=60
}

# Whether samples are lost depends on the machine (tests/bench): each is there or counted.
record_at 997
record_at 4999
finish
