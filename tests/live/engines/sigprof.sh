#!/bin/bash
# Programs profile themselves: their streams are right, and the library disturbs nothing.
# PE_SELF and PE_EDGES are self_profiled and self_edges of tests/data/src.  PE_EXAMPLE is self_profile of
# share/stackpipe/examples; PE_SIGPROF is the library.
# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"

# run MODE [FILE...]: the program's output is in $dir/out
run() { "$PE_SELF" "$@" >"$dir/out" 2>"$dir/said" || fail "$*: status $?: $(cat "$dir/said")"; }
count() { awk -v name="$1" '$1 == name { print $2 }' "$dir/out"; }
# whole STREAM: folds it to $dir/folded; no record may be lost or malformed
whole() {
  pe-symbolize "$1" 2>"$dir/symbolized" >"$dir/named" || fail "$1: $(cat "$dir/symbolized")"
  stackfold "$dir/named" >"$dir/folded" 2>"$dir/fold-said" || fail "$1: stackfold failed"
  expect "$1: what stackfold says" '' "$(cat "$dir/fold-said")"
  grep -q '100.0 % of stacks complete' "$dir/symbolized" || fail "$1: $(cat "$dir/symbolized")"
}
sum_ms() { awk '{ sum += $NF } END { printf "%d\n", sum / 1000 }' "$dir/folded"; }

# The kernel sends such signals at its ticks.  If many programs run, a program is running at few of these
# ticks.  So the test repeats a run whose shares are wrong.
near() { awk -v w="$1" -v g="$2" 'BEGIN { d = w - g; exit !(d <= 5 && -d <= 5) }'; }
shares_are() {  # FIRST NAME SECOND NAME THIRD NAME
  near "$1" "$(share "[;]$2[; ]" "$dir/folded")" && near "$3" "$(share "[;]$4[; ]" "$dir/folded")" &&
    near "$5" "$(share "[;]$6[; ]" "$dir/folded")"
}
# hold SHARES MODE
hold() {
  for _ in 1 2 3 4 5; do
    run "$2" "$dir/stream"
    whole "$dir/stream"
    # shellcheck disable=SC2086 # words
    shares_are $1 && return
  done
  fail "$2: $(cat "$dir/folded")"
}

hold '50 fifty 30 thirty 20 twenty' shares
at_least 'whole stacks' 99 "$(share '^self_profiled;_start;.*;main;run_shares;work;' "$dir/folded")"
expect 'lost' 0 "$(count lost)"
within 'time that is sampled' "$(count cpu_ms)" "$(count sampled_ms)" 300
within 'time in the stream' "$(count sampled_ms)" "$(sum_ms)" 1

hold '30 spin_early 50 spin_late 20 spin_first' threads
at_least 'a thread by its name' 90 "$(awk '/;spin_late[; ]/ { all += $NF; if (/^late;/) hit += $NF } END { print 100 * hit / all }' "$dir/folded")"
hold '50 spin_first 50 spin_added 0 spin_other' chosen
run blocked "$dir/stream"
run errno "$dir/stream"

run twice "$dir/stream" "$dir/second"
whole "$dir/stream"
at_least 'the first time' 90 "$(share 'spin_first[; ]' "$dir/folded")"
whole "$dir/second"
at_least 'the second time' 90 "$(share 'spin_again[; ]' "$dir/folded")"
run fork "$dir/stream" "$dir/second"
whole "$dir/stream"
at_least 'the parent' 90 "$(share 'spin_first[; ]' "$dir/folded")"
expect 'the child in the parent' 0.0 "$(share 'spin_child' "$dir/folded")"
whole "$dir/second"
at_least 'the child' 90 "$(share 'spin_child[; ]' "$dir/folded")"
run dlopen "$PE_SIGPROF" "$dir/stream"
whole "$dir/stream"
for mode in own-handler taken-over closed stalled storm wall exec; do
  run $mode
done

# Difficult cases: code that is loaded later, stacks that are cut or belong to no thread, missing descriptors.
edge() { "$PE_EDGES" "$@" 2>"$dir/said" || fail "$*: status $?: $(cat "$dir/said")"; }
edge plugin "$PE_PLUGIN" "$dir/stream"
whole "$dir/stream"
within 'code that was loaded' 66.7 "$(share ';main;run_plugin;plugin_spin[; ]' "$dir/folded")" 10
edge deep "$dir/stream"
fold "$dir/stream" >"$dir/folded" 2>/dev/null
at_least 'the top of a deep stack' 90 "$(share ';descend;descend;spin_deep[; ]' "$dir/folded")"
edge stacks "$dir/stream"
fold "$dir/stream" >"$dir/folded" 2>/dev/null
for name in coroutine alternate; do
  within "$name stack" 50 "$(share "spin_${name}[; ]" "$dir/folded")" 10
done
edge closed "$dir/stream"
whole "$dir/stream"
at_least 'without standard descriptors' 90 "$(share 'spin_closed[; ]' "$dir/folded")"
edge unnoticed

# The kernel gives no timers.
if (ulimit -i 0; "$PE_SELF" shares "$dir/stream") >/dev/null 2>"$dir/said"; then fail 'started without timers'; fi
grep -q 'start: the kernel refused a timer' "$dir/said" || fail "without timers: $(cat "$dir/said")"

# perf can also read such streams.
if command -v perf >/dev/null; then
  perf script -i - <"$dir/second" 2>&1 | grep -q 'spin_child' || fail 'perf does not read the stream'
fi

# A program that is killed leaves a stream without an end, which holds the samples up to that point.
rm -f "$dir/stream"
"$PE_SELF" shares "$dir/stream" >/dev/null 2>&1 &
for _ in $(seq 600); do [ "$(stat -c %s "$dir/stream" 2>/dev/null || echo 0)" -gt 50000 ] && break; sleep 0.1; done
kill -KILL $!
wait $! 2>/dev/null
pe-symbolize -q "$dir/stream" 2>/dev/null | stackfold >"$dir/folded" 2>"$dir/fold-said"
at_least 'before it was killed' 90 "$(share ';work;' "$dir/folded")"

# Programs that do what is dangerous beside a profiler do not die of it.  A library profiles them.
cat >"$dir/profiled.c" <<'END'
#include <fcntl.h>
#include <stackpipe/sigprof.h>
#include <stdlib.h>
__attribute__((constructor)) static void start(void) {
  sp_sigprof_options options = SP_SIGPROF_OPTIONS;
  options.hz = 999;
  options.clock = SP_SIGPROF_WALL;
  if (sp_sigprof_start(&options, open("/dev/null", O_WRONLY)) != SP_SIGPROF_OK)
    abort();
}
__attribute__((destructor)) static void stop(void) { sp_sigprof_stop(NULL); }
END
cc -shared -fPIC -I "$(dirname "$0")/../../../include" -o "$dir/profiled.so" "$dir/profiled.c" "$PE_SIGPROF"
for name in coroutines protecting unmapping protecting unmapping userfaults jit collector storm jumps nested loads; do
  LD_LIBRARY_PATH=$(dirname "$PE_SIGPROF") LD_PRELOAD=$dir/profiled.so "$PE_ODD_PROGRAMS" $name 0.3
  expect "$name: status" 7 $?
done

# Runs the example as its users do.
example_holds() {
  "$PE_EXAMPLE" 3 >"$dir/folded" 2>"$dir/said" || fail "example: status $?: $(cat "$dir/said")"
  shares_are 50 fifty 30 thirty 20 twenty
}
example_holds || example_holds || example_holds || example_holds || fail "example: $(cat "$dir/folded")"
PATH=/nowhere "$PE_EXAMPLE" 1 >"$dir/folded" 2>"$dir/said" && fail 'an example without filters succeeds'
grep -q 'self_profile: pe-symbolize: No such file' "$dir/said" || fail "without filters: $(cat "$dir/said")"
finish
