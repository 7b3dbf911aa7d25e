#!/bin/bash
# The recorder keeps up with every CPU busy in stacks of 60 KiB, unwinding while it records.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/stacks_lib.sh"
program_of o2 || finish

# lost_of FILE: samples and lost ones, of the closing line
lost_of() { sed -nE 's/^pe-record: ([0-9]+) samples, ([0-9]+) lost.*/\1 \2/p' "$1"; }

# Three threads on two CPUs or more; 2 s of CPU time each.
for hz in 997 4999; do
  pe-record -F $hz -o "$dir/$hz.pe" -- "$program" 2000 thread=60 2>"$dir/$hz.err" || fail "$hz Hz: $(cat "$dir/$hz.err")"
  [ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/$hz.err"
  read -r samples lost <<<"$(lost_of "$dir/$hz.err")"
  [ -n "${lost:-}" ] || { fail "$hz Hz: no closing line: $(cat "$dir/$hz.err")"; continue; }
  # A machine that is busy besides takes fewer samples of a thread's CPU time only where it stops the clock.
  at_least "$hz Hz: samples" $((hz * 3)) $((samples + lost))
  declare "lost_at_$hz=$(awk -v l="$lost" -v s="$samples" 'BEGIN { printf "%.2f", 100 * l / (s + l) }')"
  check_cases "at_$hz" "$dir/$hz.pe" $((hz * 3)) thread=60
done
expect 'lost at 997 Hz, %' 0.00 "${lost_at_997:-}"
awk -v l="${lost_at_4999:-100}" 'BEGIN { exit !(l < 1) }' || fail "lost at 4999 Hz: $lost_at_4999 %"
finish
