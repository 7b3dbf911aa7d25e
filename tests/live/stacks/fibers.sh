#!/bin/bash
# A fiber's stack is complete: it ends where makecontext, or Boost's make_fcontext, started it.
. "$(dirname "$0")/../lib.sh"

# check LABEL FUNCTION: no stack of a.pe ends, for lack of a rule, in the file of the fiber's entry.  The
# fiber's stacks lead from its entry to the function.  One or two samples of the program's start may end in
# the dynamic linker, and one in setcontext(): by its rules, the caller's registers are in the ucontext_t, which
# no copy of a stack holds.
check() {
  pe-symbolize "$dir/a.pe" 2>"$dir/err2" | stackfold 2>/dev/null | grep ";$2" >"$dir/fiber.folded" || fail "$1: no sample in the fiber"
  sed -E 's/(^|[ ;])1 ended in libc[^:;]*: stack not captured//' "$dir/err" "$dir/err2" >"$dir/ends"
  grep -Eq 'ended in (libc|libboost|odd_stacks|boost_fiber)[^:;]*: ' "$dir/ends" && fail "$1: ended elsewhere: $(cat "$dir/err" "$dir/err2")"
}

engines=perf
can_record --engine bpf 2>/dev/null && engines='perf bpf'
for engine in $engines; do
  pe-record -v --engine "$engine" -F 997 -o "$dir/a.pe" -- "$PE_ODD" fiber 300 2>"$dir/err"; expect "$engine: status" 0 $?
  check "ucontext, $engine" 'in_a_fiber;innermost'
  pe-record -v --engine "$engine" -F 997 -o "$dir/a.pe" -- "$PE_BOOST_FIBER" 300 2>"$dir/err"; expect "Boost, $engine: status" 0 $?
  check "Boost, $engine" '.*fiber_entry.*spin_in_fiber'
  offcpu -v --engine "$engine" -o "$dir/a.pe" -- "$PE_ODD" fiber 200 2>"$dir/err" || fail "offcpu, $engine: $(cat "$dir/err")"
  check "offcpu, $engine" 'in_a_fiber;innermost[^;]*;rest'
done
pe-record -v --keep-stacks -F 997 -o "$dir/a.pe" -- "$PE_ODD" fiber 300 2>"$dir/err"; expect 'kept: status' 0 $?
check 'kept stacks, ucontext' 'in_a_fiber;innermost'
grep -qE '(100.0|99.[0-9]) % of stacks complete' "$dir/err2" || fail "kept: $(cat "$dir/err2")"
finish
