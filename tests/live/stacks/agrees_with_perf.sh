#!/bin/bash
# Unwinds the stacks that perf copied, by us and by perf: they are the same, address by address.
# support/compare_chains.py lists the differences that it allows.  Our stacks may also be longer: perf stops
# at 127 frames, and does not follow frame pointers through code without CFI.  A few of 1,000 may be shorter:
# where the C++ runtime enters a landing pad, neither result is right, and perf goes on by rbp.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../stacks_lib.sh"
command -v perf >/dev/null || skip 'perf is not installed'
compare=$(dirname "$0")/../../support/compare_chains.py

# Recursion through C functions, a hundred levels or a few.  With a hundred, the stack has more frames than
# perf prints.
cat >"$dir/loop.py" <<'PY'
import sys, time
def down(levels):
    return sum(range(3000)) if levels == 0 else sum(map(down, [levels - 1]))
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end:
    down(70)
    down(5)
PY

agree() {  # LABEL SAMPLES PIPE|FILE COMMAND...
  local counts
  if [ "$3" = pipe ]; then
    record_by_perf -m 8M --call-graph dwarf,65528 -F 997 -e cpu-clock -o - -- "${@:4}" >"$dir/perf.data" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
    pe-symbolize -q --no-tail-calls <"$dir/perf.data" >"$dir/our.pe" 2>>"$dir/err" || fail "$1: $(cat "$dir/err")"
    perf script -i - --no-inline --ns -F tid,time,ip,dso <"$dir/perf.data" >"$dir/perf.txt" 2>/dev/null
  else
    record_by_perf -m 8M --call-graph dwarf,65528 -F 997 -e cpu-clock -o "$dir/perf.data" -- "${@:4}" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
    pe-symbolize -q --no-tail-calls "$dir/perf.data" >"$dir/our.pe" 2>>"$dir/err" || fail "$1: $(cat "$dir/err")"
    perf script -i "$dir/perf.data" --no-inline --ns -F tid,time,ip,dso >"$dir/perf.txt" 2>/dev/null
  fi
  python3 "$compare" "$dir/our.pe" "$dir/perf.txt" >"$dir/verdict" || fail "$1: $(cat "$dir/verdict")"
  counts=$(tail -1 "$dir/verdict")
  [ -z "${PE_VERBOSE:-}" ] || sed "s/^/$1: /" "$dir/verdict"
  # shellcheck disable=SC2086 # equal N longer N shorter N contradictory N unmatched N
  set -- "$1" "$2" $counts
  at_least "$1: samples compared" "$2" $(($4 + $6 + $8 + ${10}))
  at_least "$1: frame by frame as perf's, or longer, %" 99.5 "$(awk -v hit=$(($4 + $6)) -v all=$(($4 + $6 + $8 + ${10})) 'BEGIN { print all ? 100 * hit / all : 0 }')"
  if [ "${10}" != 0 ] || [ "${12}" != 0 ]; then
    fail "$1: $counts"; cat "$dir/verdict"
  fi
}

program_of o2 && agree o2 1000 file "$program" 120 alloca realigned signal exception plt thread=1 recursion recursion=100 memcpy qsort vdso syscall noreturn
program_of clang && agree clang 500 pipe "$program" 100 alloca realigned signal plt thread=1 recursion memcpy qsort vdso syscall noreturn
# Uses the interpreter itself.  If a script of that name executes it, perf 6.1 ends its stacks in libc.  It
# also leaves out frames of ld.so (of _start, _dl_start, _dl_sysdep_start it leaves out the second), as the
# code shows.
python=$(python3 -c 'import sys; print(sys.executable)')
agree python3 500 file "$python" "$dir/loop.py" 0.8
agree 'python3 through a pipe' 250 pipe "$python" "$dir/loop.py" 0.5
finish
