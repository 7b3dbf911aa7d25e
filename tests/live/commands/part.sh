#!/bin/bash
# record, waits, top and runs draw a part of a recording (--time).
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
# Its phases follow the clock, so that load does not move them: its start would have to take 0.7 s.
cat >phases.c <<'C'
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec + (double)t.tv_nsec * 1e-9; }
__attribute__((noinline)) int runs_first(double end) { int n = 0; while (now() < end) ++n; return n; }
__attribute__((noinline)) int runs_last(double end) { int n = 1; while (now() < end) ++n; return n; }
int main(void) {
  const double start = now();
  const int n = runs_first(start + 0.4);
  usleep(1000000);
  return n + runs_last(now() + 0.4) == 0;
}
C
cc -O1 -fno-optimize-sibling-calls -o phases phases.c || fail 'not built'
sp() { "$PE_SCRIPTS/stackpipe" "$@" >out 2>err; status=$?; }
# has LABEL FILE WANTED OTHER
has() {
  grep -q "$3" "$2" || fail "$1: no $3: $(cat err)"
  ! grep -q "$4" "$2" || fail "$1: $4"
}

sp record -o late.folded --time +1100ms -- ./phases; expect 'record: status' 0 $status
has 'record' late.folded runs_last runs_first
grep -q '^# samples: ' late.folded || fail 'no facts'
sp record -o early.pe --time ,+700ms -- ./phases; expect 'pe: status' 0 $status
stackfold -q early.pe >early.folded; has 'pe' early.folded runs_first runs_last
sp waits -o waits.folded --time +1100ms -- ./phases; expect 'waits: status' 0 $status
has 'waits' waits.folded runs_last runs_first
# The part of the clock is exact, as is the wait in it.
sp record -q --elapsed -o elapsed.folded --time +300ms,+800ms -- ./phases; expect 'elapsed: status' 0 $status
expect 'elapsed: microseconds' 500000 "$(awk '/^# / { next } { n += $NF } END { print n }' elapsed.folded)"
has 'elapsed' elapsed.folded '\[sleep\]' runs_last

# A wrong time starts nothing.
for command in record waits; do
  sp $command --time soon -- touch started
  { [ $status = 2 ] || [ $status = 125 ]; } || fail "$command: status $status"
  [ ! -e started ] || fail "$command: started"
  grep -q "^stackpipe: --time: not FROM,TO .*: 'soon'" err || fail "$command: $(cat err)"
done

sp runs capture -- ./phases; expect 'capture: status' 0 $status
sp runs show --time +1100ms; expect 'show: status' 0 $status
grep -q runs_last out || fail "show: $(cat out err)"
! grep -q runs_first out || fail 'show: the whole run'
sp runs flamegraph --time ,+700ms --svg part.svg; expect 'flamegraph: status' 0 $status
has 'flamegraph' part.svg runs_first runs_last
sp top latest --time +1100ms; expect 'top of a run: status' 0 $status
has 'top of a run' out runs_last runs_first
rm -f profiles/*/named.pe.gz
sp top latest --time +1100ms; expect 'a run without times: status' 1 $status
grep -q 'the run has no named.pe.gz' err || fail "a run without times: $(cat err)"
sp runs list --time +1s; expect 'a command without times: status' 2 $status
finish
