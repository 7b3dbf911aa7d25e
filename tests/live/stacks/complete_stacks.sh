#!/bin/bash
# Stacks reach the thread's root, with all compilers and flags, and in all cases of the program.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"

record_build() {  # MS BUILD CASE...
  local build=$2
  program_of "$build" || return
  pe-record -F 997 -o "$dir/$build.pe" -- "$program" "$1" "${@:3}" 2>"$dir/err" || fail "$build: $(cat "$dir/err")"
  [ -z "${PE_VERBOSE:-}" ] || tail -1 "$dir/err"
}
check_build() { record_build 250 "$@" && check_cases "$1" "$dir/$1.pe" 150 "${@:2}"; }
pool_build() { record_build 60 "$@" && pool_cases "$1" "$dir/$1.pe" 60 "${@:2}"; }

check_build o2 alloca realigned signal altstack exception plt lazy thread=1 recursion recursion=1000 memcpy qsort vdso syscall tail noreturn
pool_build o0 alloca realigned signal exception plt thread=1 qsort tail noreturn
pool_build o3 realigned signal exception plt thread=1 memcpy qsort tail
pool_build fp alloca realigned signal exception plt memcpy qsort vdso syscall
pool_build clang alloca realigned signal exception plt thread=1 qsort noreturn
pool_build lld realigned exception thread=1 qsort
pool_build nopie realigned signal exception plt memcpy qsort
pool_build static signal exception thread=1 memcpy qsort vdso syscall
check_pool
check_exceptions

# Both kinds of signal: one interrupts in the middle of a function; the other at its first instruction, where
# address - 1 is another function.
grep '^signal;' "$dir/o2.folded" >"$dir/signal.folded"
for part in interrupted_within interrupted_first; do
  within "o2: signals in $part, %" 50 "$(share ";signal_case;$part;" "$dir/signal.folded")" 10
done

# The vdso is an image without a file.
grep '^vdso;' "$dir/o2.folded" >"$dir/vdso.folded"
at_least 'o2: in the vdso, below libc, %' 80 "$(share ';read_clocks;[^;]*clock_gettime[^;]*;__vdso_clock_gettime' "$dir/vdso.folded")"
finish
