#!/bin/bash
# Stacks lead through stubs that were generated at run time.  The unwinder recognizes them by their code, or
# by the values that they leave on the stack.
. "$(dirname "$0")/../lib.sh"

# The stubs alternate: one reserves stack space, the other pushes the frame pointer.
through=';main(;run_stubs)?(;\[unknown\];in_a_stub){6};innermost'
# check LABEL: checks the stacks of a.pe
check() {
  fold "$dir/a.pe" >"$dir/a.folded" || fail "$1: not folded"
  grep ';in_a_stub' "$dir/a.folded" >"$dir/stubs.folded" || fail "$1: no sample in a stub: $(cat "$dir/err")"
  expect "$1: stacks from _start through the stubs, %" 100.0 "$(share "^odd_stacks;_start;.*$through" "$dir/stubs.folded")"
}

engines=perf
can_record --engine bpf 2>/dev/null && engines='perf bpf'
# The process keeps running, because nobody can read the code of a process that has ended.
"$PE_ODD" stubs 600000 & target=$!
# It never sleeps.  It waits for its CPU, which it shares with another process.
taskset -cp 0 $target >/dev/null
for engine in $engines; do
  until_used 400 $target pe-record --engine "$engine" -F 997 -p $target -o "$dir/a.pe" 2>"$dir/err"; expect "$engine: status" 0 $?
  check "pe-record, $engine"
  if [ "$engine" = perf ]; then
    grep -q 'guessed from the top' "$dir/err" && fail "guessed: $(cat "$dir/err")"
  fi
  taskset -c 0 "$PE_ODD" stubs 600000 & other=$!
  until_used 200 $target offcpu --engine "$engine" -p $target -o "$dir/a.pe" 2>"$dir/err" || fail "offcpu, $engine: $(cat "$dir/err")"
  kill $other
  check "offcpu, $engine"
done
kill $target

# There is no process to read the code from.  Only stubs that reserve stack space are tested: a frame pointer
# would skip the others.
pe-record --keep-stacks -F 997 -o "$dir/a.pe" -- "$PE_ODD" stub 400 2>"$dir/err"; expect 'kept: status' 0 $?
check 'pe-record --keep-stacks'
pe-symbolize "$dir/a.pe" 2>"$dir/err" >/dev/null
grep -q 'guessed from the top of the stack' "$dir/err" || fail "nothing was guessed: $(cat "$dir/err")"
if command -v perf >/dev/null; then
  record_by_perf -e cpu-clock -F 997 --call-graph dwarf -o "$dir/a.pe" -- "$PE_ODD" stub 200 2>/dev/null
  check 'perf record --call-graph dwarf'
fi
finish
