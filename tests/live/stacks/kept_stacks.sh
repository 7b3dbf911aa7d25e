#!/bin/bash
# Stacks that are recorded to be unwound later are complete: kept by pe-record, by perf in a file, by perf in
# a pipe.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
command -v perf >/dev/null || skip 'perf is not installed'
cases=(alloca realigned signal altstack exception plt thread=1 recursion=1000 qsort vdso syscall noreturn)
ms=150
program_of o2 || finish
perf_record() { record_by_perf -m 8M --call-graph dwarf,65528 -F 997 -e cpu-clock "$@" "$program" $ms "${cases[@]}" 2>"$dir/err"; }

pe-record --keep-stacks -F 997 -o "$dir/kept.pe" -- "$program" $ms "${cases[@]}" 2>"$dir/err" || fail "kept: $(cat "$dir/err")"
check_cases kept "$dir/kept.pe" $((ms * 6 / 10)) "${cases[@]}"
perf_record -o "$dir/perf.data" || fail "perf record: $(cat "$dir/err")"
check_cases perf.data "$dir/perf.data" $((ms * 6 / 10)) "${cases[@]}"
perf_record -o - >"$dir/perf.pipe" || fail "perf record into a pipe: $(cat "$dir/err")"
check_cases perf.pipe "$dir/perf.pipe" $((ms * 6 / 10)) "${cases[@]}"

# If stacks are unwound while recording, the stream is small: it has call chains instead of dumps.
pe-record -F 997 -o "$dir/plain.pe" -- "$program" $ms alloca memcpy 2>/dev/null
pe-record --keep-stacks -F 997 -o "$dir/kept.pe" -- "$program" $ms alloca memcpy 2>/dev/null
[ "$(stat -c %s "$dir/plain.pe")" -lt $(($(stat -c %s "$dir/kept.pe") / 4)) ] ||
  fail "plain chains take $(stat -c %s "$dir/plain.pe") bytes, dumps $(stat -c %s "$dir/kept.pe")"
finish
