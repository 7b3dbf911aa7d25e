#!/bin/bash
# Go's stacks are complete, with symbols and without, and across changes of stacks.  The recorder reads
# nothing from the goroutines' heap.
. "$(dirname "$0")/../lib.sh"

# samples_in STREAM: prints the number of samples
samples_in() { stackfold "$1" 2>/dev/null | awk '{ n += $NF } END { print n + 0 }'; }

# record ENGINE PROGRAM [FRAMES]: records while the program uses 700 ms of CPU time.  This starts when the recorder has
# its tables and samples.
record() {
  local target recorder
  "$2" 60000 ${3:+"$3"} & target=$!
  rm -f "$dir/a.pe"
  pe-record -v --engine "$1" -F 997 -p $target -o "$dir/a.pe" 2>"$dir/err" & recorder=$!
  until [ -s "$dir/a.pe" ] || ! kill -0 $recorder 2>/dev/null; do sleep 0.02; done
  await_used 700 $target
  kill -TERM $recorder
  wait $recorder; expect "$1: status; $(cat "$dir/err")" 0 $?
  kill $target
  wait $target 2>/dev/null
}

engines=perf
can_record --engine bpf 2>/dev/null && engines='perf bpf'
for engine in $engines; do
  for program in "$PE_GO" "${PE_GO}_stripped"; do
    label="${program##*/}, $engine"
    record "$engine" "$program"
    [ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/err"
    complete=$(grep -oE '[0-9.]+ % of stacks complete' "$dir/err" | cut -d' ' -f1)
    at_least "$label: complete, %" 97 "${complete:-0}"
    grep -q 'continued in' "$dir/err" && fail "$label: read from the heap: $(cat "$dir/err")"
    fold "$dir/a.pe" >"$dir/a.folded"
    at_least "$label: from the goroutine's first function through main, %" 80 "$(share '^[^;]*;runtime\.goexit[^;]*;.*;main\.' "$dir/a.folded")"
    expect "$label: functions without names, %" 0.0 "$(share 'goroutines[^;]*\+0x' "$dir/a.folded")"
    expect "$label: samples in the stream" "$(grep -oE '[0-9]+ samples? in' "$dir/err" | cut -d' ' -f1)" "$(samples_in "$dir/a.pe")"
  done
  record "$engine" "$PE_GO"
  fold "$dir/a.pe" >"$dir/a.folded"
  grep ';main\.splitter' "$dir/a.folded" >"$dir/split.folded" || fail "$engine: no sample of splitter"
  at_least "$engine: splitter from the goroutine's first function on, %" 99 \
    "$(share '^goroutines;runtime\.goexit[^;]*(;main\.(main\.|dive)[^;]*)+;main\.splitter' "$dir/split.folded")"
  grep ';runtime\.systemstack' "$dir/a.folded" >"$dir/system.folded" || fail "$engine: no sample on the system's stack"
  # Functions without a frame pointer are exceptions: the engine perf uses the frames that the kernel found by
  # frame pointers.
  at_least "$engine: over the change to the system's stack, %" 50 "$(share '^goroutines;runtime\.goexit[^;]*;.*;runtime\.systemstack' "$dir/system.folded")"
done

# A goroutine's stack is in the heap, and its end is not known.  The frames of these take 200 KiB, three times a copy.
record ptrace "$PE_GO" 750
fold "$dir/a.pe" >"$dir/a.folded"
grep -E ';main\.(dive|splitter|sorter)' "$dir/a.folded" >"$dir/deep.folded" || fail 'deep goroutines: no sample'
at_least 'deep goroutines, ptrace: from the first function on, %' 95 "$(share '^goroutines;runtime\.goexit[^;]*;' "$dir/deep.folded")"
finish
