#!/bin/bash
# If a stack is deeper than its copy, the recorder continues in the process's memory, to the root.  Without
# this, the stack is cut and counted.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
program_of o2 || finish

pe-record -v -F 997 -o "$dir/deep.pe" -- "$program" 2000 deep=320 2>"$dir/err" || fail "$(cat "$dir/err")"
[ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/err"
check_cases continued "$dir/deep.pe" 1200 deep=320
grep -Eq '[0-9]{3,} continued in' "$dir/err" || fail "no word about continued stacks: $(cat "$dir/err")"

# No copy extends over pages that were never written.  If the thread's root is known (alloca), the recorder
# reads the rest.
pe-record -F 997 -o "$dir/unwritten.pe" -- "$program" 1500 alloca unwritten=48 2>"$dir/err" || fail "$(cat "$dir/err")"
[ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/err"
check_cases 'over unwritten pages' "$dir/unwritten.pe" 900 alloca unwritten=48

pe-record --no-continue -F 997 -o "$dir/cut.pe" -- "$program" 300 deep=320 2>"$dir/err" || fail "$(cat "$dir/err")"
[ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/err"
fold "$dir/cut.pe" >"$dir/cut.folded"
grep '^deep=320;' "$dir/cut.folded" >"$dir/case"
at_least 'cut: samples' 180 "$(awk '{ n += $NF } END { print n + 0 }' "$dir/case")"
expect 'cut: complete stacks, %' 0.0 "$(share "^[^;]+;$main_root" "$dir/case")"
at_least 'cut: what the copy holds, %' 99 "$(share '^[^;]+;deeper;deeper;deeper;(deeper;)?spin' "$dir/case")"
grep -Eq ' [0-9]{3,} stacks cut at [0-9]+ KiB: ' "$dir/err" || fail "no word about cut stacks: $(cat "$dir/err")"
finish
