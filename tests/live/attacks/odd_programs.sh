#!/bin/bash
# A recorded program does not die of its recorder: programs that do what is dangerous beside a profiler (odd_programs.c)
# end with their own status and right results.  The engine signal, which runs inside of them, has all of them; with PE_ALL
# the other recorders have, too.  PE_SECONDS is how long each runs, for a soak:
#     PE_ALL=1 PE_SECONDS=60 meson test -C build odd_programs --timeout-multiplier 0
. "$(dirname "$0")/../lib.sh"
seconds=${PE_SECONDS:-0.2}
names=$("$PE_ODD_PROGRAMS")
at_least 'programs' 20 "$(wc -w <<<"$names")"
# survives PROGRAM RECORDER...
survives() {
  local status
  "${@:2}" -o "$dir/odd.pe" -- "$PE_ODD_PROGRAMS" "$1" "$seconds" >"$dir/out" 2>"$dir/err"; status=$?
  [ $status = 7 ] || fail "$1 under ${*:2}: status $status, not 7: $(cat "$dir/err")"
}
said() { grep -Eq -- "$1" "$dir/err" || fail "not said: $1: $(cat "$dir/err")"; }

for name in $names; do
  survives "$name" pe-record --engine signal -F 499
  # These programs allow no sample, or not all of it: the closing lines count that.
  case $name in
    small_stack) said ': [0-9]+ times? a thread was not sampled, because its alternate signal stack was too small: use --engine ptrace$' ;;
    no_return) said ': 1 time sampling ended early, because a seccomp filter forbids returning from signal handlers: use --engine ptrace$' ;;
    filter) said ': [0-9]+ samples? without their stacks, which the kernel did not copy \(seccomp, or protected memory\): ' ;;
  esac
done
# Another thread changes the memory beyond the stack of a coroutine between the check and the copy of a page: rarely, so
# this has more tries.
for _ in 1 2 3 4 5; do survives protecting pe-record --engine signal -F 999 --clock wall; done
for name in coroutines protecting unmapping loads no_return filter; do survives "$name" malloctrace; done
# A recorder that reads missing memory of another process must not wait until a thread of that supplies it.
! can_record --engine ptrace 2>/dev/null || survives userfaults pe-record --engine ptrace -F 499

# A filter of system calls that the recorder does not have may kill the program because of our calls.
pe-record --engine signal -o "$dir/odd.pe" -- "$PE_DENY" perf_event_open EPERM "$PE_ODD_PROGRAMS" coroutines 0.05 2>"$dir/err"
said "is not sampled: it has a seccomp filter that pe-record does not have"
# One that the recorder has, too, is known.
"$PE_DENY" perf_event_open EPERM pe-record --engine signal -F 499 -o "$dir/odd.pe" -- "$PE_ODD_PROGRAMS" coroutines 0.2 2>"$dir/err"
expect 'behind the same filter: status' 7 $?
grep -q 'is not sampled' "$dir/err" && fail "behind the same filter: $(cat "$dir/err")"

# Where the kernel copies nothing for us, as in older containers, only a thread's own stack is read.
"$PE_DENY" process_vm_readv EPERM pe-record --engine signal -F 499 -o "$dir/odd.pe" -- "$PE_ODD_PROGRAMS" protecting 0.2 2>"$dir/err"
expect 'without copies: status' 7 $?
said ': [0-9]+ samples? without their stacks, which the kernel did not copy'

# The recorder is killed: the program lives on unharmed, and writes nothing.
for recorder in 'pe-record -q --engine signal -F 999' malloctrace; do
  # shellcheck disable=SC2016,SC2086 # not this shell's; words
  setsid $recorder -o "$dir/killed.pe" -- sh -c 'touch "$1/begun"; "$0" unmapping 0.3; echo $? >"$1/status.new"; mv "$1/status.new" "$1/status"' \
    "$PE_ODD_PROGRAMS" "$dir" >"$dir/out" 2>"$dir/err" & killed=$!
  await "$dir/begun"; kill -9 $killed; wait $killed 2>/dev/null
  await "$dir/status"
  expect "$recorder was killed: status" 7 "$(cat "$dir/status")"
  expect "$recorder was killed: the program's lines" '' "$(cat "$dir/out" "$dir/err")"
  rm "$dir/begun" "$dir/status"
done

[ -n "${PE_ALL:-}" ] || finish
for engine in perf bpf ptrace; do
  can_record --engine $engine 2>/dev/null || { echo "skipped: engine $engine cannot record here"; continue; }
  for name in $names; do
    survives "$name" pe-record --engine $engine -F 499
  done
done
for name in $names; do survives "$name" malloctrace; survives "$name" offcpu; done
finish
