#!/bin/bash
# Stacks lead through stubs that were made at run time, known by their bytes, or by what they leave on the stack.
. "$(dirname "$0")/../lib.sh"

# In turns: one stub makes room, the other pushes the frame pointer.
through=';main(;run_stubs)?(;\[unknown\];in_a_stub){6};innermost'
# check LABEL: the stacks of a.pe
check() {
  fold "$dir/a.pe" >"$dir/a.folded" || fail "$1: not folded"
  grep ';in_a_stub' "$dir/a.folded" >"$dir/stubs.folded" || fail "$1: no sample in a stub: $(cat "$dir/err")"
  expect "$1: stacks from _start through the stubs, %" 100.0 "$(share "^odd_stacks;_start;.*$through" "$dir/stubs.folded")"
}

engines=perf
can_record --engine bpf 2>/dev/null && engines='perf bpf'
# Of a process that goes on: once it has ended nobody can read its code.
"$PE_ODD" stubs 600000 & target=$!
for engine in $engines; do
  until_used 400 $target pe-record --engine "$engine" -F 997 -p $target -o "$dir/a.pe" 2>"$dir/err"; expect "$engine: status" 0 $?
  check "pe-record, $engine"
  if [ "$engine" = perf ]; then
    grep -q 'guessed from the top' "$dir/err" && fail "guessed: $(cat "$dir/err")"
  fi
  until_used 200 $target offcpu --engine "$engine" -p $target -o "$dir/a.pe" 2>"$dir/err" || fail "offcpu, $engine: $(cat "$dir/err")"
  check "offcpu, $engine"
done
kill $target

# Where there is no process to read the code from: those that make room, for a frame pointer would lead past others.
pe-record --keep-stacks -F 997 -o "$dir/a.pe" -- "$PE_ODD" stub 400 2>"$dir/err"; expect 'kept: status' 0 $?
check 'pe-record --keep-stacks'
pe-symbolize "$dir/a.pe" 2>"$dir/err" >/dev/null
grep -q 'guessed from the top of the stack' "$dir/err" || fail "nothing was guessed: $(cat "$dir/err")"
if command -v perf >/dev/null; then
  record_by_perf -e cpu-clock -F 997 --call-graph dwarf -o "$dir/a.pe" -- "$PE_ODD" stub 200 2>/dev/null
  check 'perf record --call-graph dwarf'
fi
finish
