#!/bin/bash
# Programs sample themselves by the library that is loaded into them: it records the right samples and
# disturbs no program.
# shellcheck source=SCRIPTDIR/../lib.sh
. "$(dirname "$0")/../lib.sh"

# sample [SETTING...] -- COMMAND...: returns the command's status.  The folded stacks, in microseconds, are in
# $dir/folded; counts and the program's messages are in $dir/said.
sample() {
  "$PE_SAMPLER_STREAM" "$PE_SAMPLER_LIBRARY" "$dir/stream" "$@" >"$dir/out" 2>"$dir/said"
  local status=$?
  fold "$dir/stream" >"$dir/folded" 2>"$dir/fold-said"
  return $status
}
count() { awk -v name="$1" '$1 == name { print $2 }' "$dir/said"; }
said() { grep -q "$1" "$dir/said" || fail "$2 was not said: $(cat "$dir/said")"; }
check_whole() {
  expect "$1: damaged" 0 "$(count damaged)"
  expect "$1: without timer" 0 "$(count without_timer)"
  expect "$1: without room" 0 "$(count without_room)"
  expect "$1: before the reader" 0 "$(count before_reader)"
}
# run_mode MODE [SETTING...]: runs one mode of the program that watches itself
run_mode() {
  sample "${@:2}" -- "$PE_SAMPLED" "$1" || fail "$1: status $?: $(grep sampled: "$dir/said")"
  check_whole "$1"
}

# The kernel sends such signals at its ticks.  If many programs run, a program is running at few of these
# ticks.  So the test repeats a recording whose shares are wrong.  (signal.sh checks the shares of threads.)
near() { awk -v w="$1" -v g="$2" 'BEGIN { d = w - g; exit !(d <= 5 && -d <= 5) }'; }
shares_hold() {
  sample "$@" -- "$PE_WORKLOAD" shares 2 || fail "shares $*: status $?"
  near 50 "$(share ';fifty[; ]' "$dir/folded")" && near 30 "$(share ';thirty[; ]' "$dir/folded")" &&
    near 20 "$(share ';twenty[; ]' "$dir/folded")"
}
shares_hold hz=1000 || shares_hold hz=1000 || shares_hold hz=1000 || shares_hold hz=1000 || fail "1000 Hz: $(cat "$dir/folded")"
at_least 'whole stacks' 99 "$(share '^workload;_start;.*;main;work;' "$dir/folded")"
within 'seconds' 2.0 "$(awk '{ sum += $NF } END { print sum / 1e6 }' "$dir/folded")" 0.25
within 'periods at 1000 Hz' 2000 "$(count weight)" 200

run_mode eight hz=499
for n in 1 2 3 4 5 6 7 8; do
  expect "threads named t$n" 1 "$(awk -v n="t$n" '$1 == "thread" && $4 == n' "$dir/said" | wc -l)"
done
run_mode eight name=t8 hz=499
at_least 'the one thread that is wanted' 99 "$(share 'spin_8[; ]' "$dir/folded")"

for mode in own-handler own-itimer errno storm; do
  run_mode $mode hz=499
  at_least "samples of $mode" 100 "$(count weight)"
done
sample -- "$PE_SAMPLED" default
expect 'SIGPROF that nobody handles' 155 $?

run_mode masked
at_least 'a thread that blocks all signals' 90 "$(share 'spin_masked[; ]' "$dir/folded")"
run_mode seccomp
at_least 'behind a filter of system calls' 50 "$(share 'spin_masked[; ]' "$dir/folded")"
run_mode closed
at_least 'without descriptors' 90 "$(share 'spin_closed[; ]' "$dir/folded")"
run_mode hidden hz=499
at_least 'a thread begun by a library' 15 "$(share 'spin_hidden[; ]' "$dir/folded")"
sample clock=wall hz=99 -- "$PE_CROWD" turns 20000 0 || fail "turns: status $?"
at_least 'turns: threads that found no slot free again' 100 "$(count before_reader)"
expect 'turns: threads, sampled and left out' 20001 $(($(count threads) + $(count before_reader)))
expect 'turns: too many at once' 0 "$(count without_room)"
run_mode bare hz=499
expect 'threads without thread-local storage' 1 "$(count without_variables)"
expect 'samples of those' '' "$(grep spin_bare "$dir/folded")"
at_least 'its creator' 90 "$(share 'spin_main[; ]' "$dir/folded")"
run_mode stacks hz=499
for name in alternate coroutine edge; do
  within "$name stack" 33.3 "$(share "spin_${name}[; ]" "$dir/folded")" 10
done

run_mode tree
for name in returned exited killed before_exec closed; do
  within "child: $name" 20 "$(share "spin_${name}[; ]" "$dir/folded")" 8
done
expect 'processes of the tree' 6 "$(count processes)"
run_mode tree follow=0
expect 'children that are not followed' 0 "$(grep -c 'spin_killed' "$dir/folded")"
sample -- "$PE_SAMPLED" exec "$PE_WORKLOAD" shares 1 || fail "exec: status $?"
at_least 'the program begun' 55 "$(share ';work;' "$dir/folded")"
at_least 'the program before' 20 "$(share 'spin_before_exec[; ]' "$dir/folded")"
for how in posix_spawn vfork-execve execle; do
  sample -- "$PE_BEGINS" $how "$PE_SAMPLED" closed || fail "$how: status $?"
  at_least "begun by $how with an environment of its own" 55 "$(share 'spin_closed[; ]' "$dir/folded")"
done

# The wall clock also counts time in which the program waits.
sample clock=wall -- sleep 1 || fail "wall: status $?"
at_least 'samples of a sleep' 50 "$(count weight)"
at_least 'of them asleep' 80 "$(share 'nanosleep' "$dir/folded")"

# If the kernel refused a timers to threads, the library uses the timer of the process.  It must not kill the
# program after exec.
cat >"$dir/limited" <<'END'
#!/bin/bash
ulimit -i 0; exec "$@"
END
chmod +x "$dir/limited"
sample -- "$dir/limited" "$PE_WORKLOAD" shares 2 || fail "without timers: status $?"
within 'fifty without timers' 50 "$(share ';fifty[; ]' "$dir/folded")" 20
sample hz=499 -- "$dir/limited" "$PE_SAMPLED" exec true || fail "exec without timers: status $?"
at_least 'before exec without timers' 50 "$(share 'spin_before_exec[; ]' "$dir/folded")"
sample -- "$dir/limited" "$PE_SAMPLED" own-itimer || fail "own timer without timers: status $?"
said 'is no longer sampled: it uses ITIMER_PROF itself' 'that sampling ended'
expect 'stopped' 1 "$(count stopped)"
sample -- "$dir/limited" "$PE_SAMPLED" default
expect 'SIGPROF without timers' 155 $?

# hold COMMAND: sets $held to a script.  It makes $dir/begun, waits for $dir/go, and runs the command.
hold() {
  rm -f "$dir/begun" "$dir/go"
  held="touch $dir/begun; until [ -e $dir/go ]; do sleep 0.05; done; $1"
}

# A recorder that is stopped loses samples.  These are counted, and the samples in the ring are kept.
hold "$PE_WORKLOAD shares 2; touch $dir/over"
"$PE_SAMPLER_STREAM" "$PE_SAMPLER_LIBRARY" "$dir/stream" ring=65536 hz=499 -- bash -c "$held" 2>"$dir/said" &
await "$dir/begun"; kill -STOP $!; touch "$dir/go"
await "$dir/over"
kill -CONT $!; wait $! || fail "stopped recorder: status $?"
at_least 'lost' 10 "$(count lost)"
at_least 'taken' 10 "$(count samples)"
within 'lost and taken' 998 "$(($(count lost_weight) + $(count weight)))" 150

# The recorder is killed: the command goes on.
hold "$PE_WORKLOAD shares 0.3; $PE_WORKLOAD fork 0.3; echo \$? >$dir/s; mv $dir/s $dir/status"
"$PE_SAMPLER_STREAM" "$PE_SAMPLER_LIBRARY" "$dir/stream" hz=499 ring=65536 -- bash -c "$held" 2>/dev/null &
await "$dir/begun"; kill -KILL $!; wait $! 2>/dev/null; touch "$dir/go"
await "$dir/status"
expect 'the status without a recorder' 0 "$(cat "$dir/status")"

# Without the recorder's settings the library does nothing.
LD_PRELOAD=$PE_SAMPLER_LIBRARY "$PE_SAMPLED" own-handler >"$dir/out" 2>&1 || fail "unasked: status $?"
expect 'unasked' '' "$(cat "$dir/out")"
finish
