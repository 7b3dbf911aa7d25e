#!/bin/bash
# Assembly without call frame information may keep a number in the frame pointer's register.  If that number is 0, the frame
# is still not the outermost one: the closing line and the folded text agree on how many stacks are complete.
. "$(dirname "$0")/../lib.sh"

engines='perf ptrace'
can_record --engine bpf 2>/dev/null && engines="$engines bpf"
for engine in $engines; do
  pe-record --engine "$engine" -F 997 -o "$dir/a.pe" -- "$PE_ODD" zero 200 2>"$dir/err"; expect "$engine: status" 0 $?
  fold "$dir/a.pe" >"$dir/a.folded" || fail "$engine: not folded"
  at_least "$engine: stacks in with_zero, %" 80 "$(share ';with_zero;in_a_fiber;innermost' "$dir/a.folded")"
  expect "$engine: with callers, %" 0.0 "$(share ';[^;]+;with_zero;' "$dir/a.folded")"
  # All others are of the program's start and end.
  printed=$(sed -n 's/.* lost, \([0-9.]*\) % of stacks complete.*/\1/p' "$dir/err")
  at_least "$engine: incomplete, %" 80 "$(awk -v p="${printed:-100}" 'BEGIN { print 100 - p }')"
done
finish
