#!/bin/bash
# The kernel and the user-space unwinder unwind the same moments of programs without frame pointers.  The
# results are the same, frame by frame.
. "$(dirname "$0")/../lib.sh"

# number NAME: prints a number of the last run
number() { awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$dir/out"; }

# Prints the number of samples whose mappings the tables knew.
known() { echo $(($(number samples) - $(number early))); }

check() {  # LABEL COMMAND...; @MS@ in it represents the milliseconds that its program runs
  local status ms command=("${@:2}")
  # At first the tables do not know some mappings, and the tool counts these samples.  A busy machine needs
  # longer to make the tables.
  for ms in 60 240 960 3840 15360; do
    "$PE_KERNEL/kernel_stacks" "${command[@]//@MS@/$ms}" >"$dir/out" 2>"$dir/err"
    status=$?
    [ "$status" != 77 ] || skip "$(sed -n 's/^skipped: //p' "$dir/out")"
    [ "$status" = 0 ] || fail "$1: $(tail -40 "$dir/err")"
    [ -z "${PE_VERBOSE:-}" ] || sed "s|^|$1: |" "$dir/out"
    [ "$(number different)" = 0 ] || fail "$1: different: $(grep '^#' "$dir/out")"
    expect "$1: stacks reused wrongly" 0 "$(number wrong_reuse)"
    expect "$1: samples lost" 0 "$(number lost)"
    # One sample may be in code of the loader that the tables know only in part: among 47 it was 2 %.
    [ "$(known)" -lt 200 ] || break
  done
  at_least "$1: samples of known mappings" 100 "$(known)"
  # The other stacks are complete.
  at_least "$1: of the others complete, %" 99 \
    "$(awk -v c="$(number complete)" -v n="$(known)" 'BEGIN { print n ? 100 * c / n : 0 }')"
}

cases='alloca realigned signal altstack exception lazy thread=2 recursion recursion=1000 memcpy qsort vdso syscall tail noreturn'
for build in o0 o2 o3 fp clang lld nopie static; do
  [ -x "$PE_STACKS/stacks_$build" ] || continue
  # shellcheck disable=SC2086 # a list of words
  check "$build" "$PE_STACKS/stacks_$build" @MS@ $cases
  at_least "$build: samples" 100 "$(number samples)"
done

# Processes that start and end, and a library's lazy entries.
check o2-plt "$PE_STACKS/stacks_o2" @MS@ plt
# shellcheck disable=SC2016 # for the shell that runs it
check shells sh -c 'for i in 1 2 3 4 5 6 7 8; do "$0" "$1" qsort & done; wait' "$PE_STACKS/stacks_o2" @MS@
# Two programs that take turns on one CPU have frames of different sizes at the same addresses.
# shellcheck disable=SC2016
check 'same addresses' taskset -c 0 sh -c '"$0_1024" "$1" & "$0_2048" "$1" & wait' "$PE_KERNEL/same_addresses" @MS@
finish
