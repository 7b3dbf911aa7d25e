#!/bin/bash
# If walks of deep stacks would take more than their part of a CPU, some samples have the next stack of their
# thread.  Each thread, and each function, still has its share, and no sample is missing.
. "$(dirname "$0")/../lib.sh"
can_record --engine bpf 2>"$dir/err" || skip "$(cat "$dir/err")"

# record OPTION... -- COMMAND: sets $samples and $thinned from the summary.  The budget is a part of all time: on a
# busy machine the program has few samples per second, so the rate must be high.
record() {
  pe-record --walk-budget 1 -F 4999 -o "$dir/x.pe" --summary 3 "$@" 3>"$dir/summary" 2>"$dir/err" || fail "$*: $(cat "$dir/err")"
  samples=$(sed -nE 's/.*"samples":([0-9]+).*/\1/p' "$dir/summary")
  thinned=$(sed -nE 's/.*"thinned":([0-9]+).*/\1/p' "$dir/summary")
}
# in_percent PATTERN: the share of the CPU samples of that function
in_percent() { share "$1" "$dir/x.folded"; }
# check LABEL POINTS: both functions have used as much CPU time.  Few stacks are walked, so shares vary.
check() {
  expect "$1: lost" 0 "$(sed -nE 's/.*"lost":([0-9]+).*/\1/p' "$dir/summary")"
  at_least "$1: thinned, of $samples" 10 "$thinned"
  grep -Eq "^pe-record: $thinned samples thinned: walking their stacks would take more than 1 % of a CPU, so they have the next stack of their thread(; [0-9]+ .*)?: raise --walk-budget, or lower --freq\$" "$dir/err" ||
    fail "$1: closing line: $(cat "$dir/err")"
  within "$1: below 4,000 calls, %" 50 "$(in_percent '[; ]spin_below_many[; ]')" "$2"
  within "$1: below few calls, %" 50 "$(in_percent '[; ]spin_below_few[; ]')" "$2"
}

# A deep thread and a shallow one.
record --engine bpf -- "$PE_DEEP" threads 0.5
fold "$dir/x.pe" >"$dir/x.folded"
expect 'threads: samples, folded' "$samples" "$(awk '{ n += $NF } END { print n }' "$dir/x.folded")"
at_least 'threads: samples of 1 s at 4999 Hz' 3000 "$samples"
check threads 5

# One thread that is deep in turn.  Samples that are thinned after a deep stack would make it wider if they had that.
record --engine bpf -- "$PE_DEEP" turns 2
fold "$dir/x.pe" >"$dir/x.folded"
expect 'turns: samples, folded' "$samples" "$(awk '{ n += $NF } END { print n }' "$dir/x.folded")"
check turns 15

# With waits, their time on the clock is right, too: the sum is that of the recording, and a sample has the number
# of threads that ran at its own time.
record --event cpu,waits -- "$PE_DEEP" threads 0.5
pe-symbolize -q "$dir/x.pe" >"$dir/x.sym"
stackfold -q --event cpu "$dir/x.sym" >"$dir/x.folded"
check waits 5
stackfold -q --weight elapsed "$dir/x.sym" >"$dir/elapsed"
stackfold -q --annotate "$dir/x.sym" >"$dir/facts"
within 'elapsed: the sum, s' "$(sed -nE 's/^# elapsed: ([0-9.]+) s$/\1/p' "$dir/facts")" \
  "$(awk '/^# / { next } { us += $NF } END { print us / 1e6 }' "$dir/elapsed")" 0.01

# Without a limit, all stacks are walked.
pe-record --walk-budget 0 --engine bpf -F 997 -o "$dir/all.pe" --summary 3 -- "$PE_DEEP" threads 0.5 3>"$dir/summary" 2>"$dir/err" ||
  fail "$(cat "$dir/err")"
grep -q '"thinned":0,' "$dir/summary" || fail "no limit: $(cat "$dir/summary")"
finish
