#!/bin/bash
# The recorder does not change the target: its signals, its stops and its end are the same, even if the
# recorder is killed.
# shellcheck disable=SC2317 # until_so calls the functions
. "$(dirname "$0")/../lib.sh"
state() { sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
tracer() { sed -n 's/^TracerPid:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null; }
ran() { cut -d' ' -f1 "/proc/$1/schedstat"; }
is_traced() { [ "$(tracer "$1")" != 0 ]; }
has_samples() { [ -n "$(stackfold -q "$1" 2>/dev/null)" ]; }  # of a stream that is being written
is_let_go() { [ "$(tracer "$1")" = 0 ]; }
is_stopped() { case $(state "$1") in [Tt]) ;; *) return 1 ;; esac; }
ran_since() { [ "$(ran "$1")" -gt $(($2 + 200000000)) ]; }  # PID NS: for 0.2 s of CPU time
runs_on() { local before; before=$(ran "$1"); sleep 0.05; [ "$(ran "$1")" -gt "$before" ]; }
record() { pe-record -v --engine ptrace "$@" 2>"$dir/err"; }

# The recorder is killed at many moments, also while a thread is stopped.  Every thread goes on, and its work
# is unchanged.
"$PE_WORKLOAD" shares 4 & target=$!
for _ in 1 2 3 4 5 6 7 8; do
  pe-record -q --engine ptrace -F 9999 -p $target -o "$dir/killed.pe" 2>/dev/null & recorder=$!
  until_so 'traced' is_traced $target
  sleep 0.1
  kill -9 $recorder; wait $recorder 2>/dev/null
  until_so 'let go' is_let_go $target
  is_stopped $target && sleep 0.2 && is_stopped $target && fail "stopped after the recorder was killed: $(state $target)"
  until_so 'runs on' runs_on $target
done
wait $target; expect "the target's own status" 0 $?

# A stopped target stays stopped, and only the SIGCONT of others continues it.
"$PE_WORKLOAD" shares 60 & target=$!
record -F 499 -d 3 -p $target -o "$dir/stop.pe" & recorder=$!
until_so 'traced' is_traced $target
kill -STOP $target
until_so 'stopped' is_stopped $target
before=$(ran $target); sleep 0.5
expect 'ran while stopped, ns' "$before" "$(ran $target)"
kill -CONT $target
until_so 'continued' ran_since $target "$before"
kill -STOP $target
until_so 'stopped again' is_stopped $target
wait $recorder; expect 'status' 0 $?
until_so 'stopped when we had gone' is_stopped $target
record -F 499 -d 0.5 -p $target -o "$dir/still.pe"; expect 'of a stopped process: status' 1 $?
# After it is released, it runs for some microseconds before it stops again.
grep -qE 'nothing was recorded: the target (was stopped by a signal all the time|ran for 0\.[0-9]+ ms in all)' "$dir/err" || fail "of a stopped process: $(cat "$dir/err")"
expect 'its closing line' '' "$(grep -E '^pe-record: [1-9][0-9]* samples? in' "$dir/err")"
until_so 'stopped after a whole recording' is_stopped $target
kill -CONT $target
until_so 'runs in the end' runs_on $target
kill $target

# Every signal arrives exactly once.
cat >"$dir/counts.sh" <<'END'
n=0; trap 'n=$((n + 1)); echo "$n" >"$1.last"' USR1; trap 'echo "$n" >"$1"; exit 5' TERM
: >"$1.ready"
while :; do :; done
END
bash "$dir/counts.sh" "$dir/counted" & target=$!
until_so 'ready' test -e "$dir/counted.ready"
record -F 999 -p $target -o "$dir/signals.pe" & recorder=$!
until_so 'traced' is_traced $target
was_counted() { [ "$(cat "$dir/counted.last" 2>/dev/null)" = "$1" ]; }
for n in $(seq 20); do kill -USR1 $target; until_so "signal $n" was_counted "$n"; done
kill -TERM $target; wait $target; expect 'its own status' 5 $?
wait $recorder; expect "the recording's" 0 $?
expect 'signals that arrived' 20 "$(cat "$dir/counted")"
pe-symbolize -q "$dir/signals.pe" >/dev/null || fail 'the stream is damaged'

# The target is killed while it is recorded.
"$PE_WORKLOAD" threads 60 & target=$!
record -F 999 -p $target -o "$dir/gone.pe" & recorder=$!
until_so 'sampled' has_samples "$dir/gone.pe"
kill -9 $target; wait $target 2>/dev/null
wait $recorder; expect 'the target was killed: status' 0 $?
pe-symbolize -q "$dir/gone.pe" >/dev/null || fail 'the stream is damaged'

# Ctrl-C releases the target.
"$PE_WORKLOAD" shares 60 & target=$!
pe-record --engine ptrace -F 999 -p $target -o "$dir/int.pe" 2>"$dir/err" & recorder=$!
until_so 'traced' is_traced $target
until_so 'sampled' has_samples "$dir/int.pe"
kill -TERM $recorder; wait $recorder; expect 'ended by a signal: status' 0 $?
expect 'tracer' 0 "$(tracer $target)"
until_so 'runs on' runs_on $target

# If the reader of the stream stops reading, the target must go on.
mkfifo "$dir/pipe"
{ sleep 3; cat >/dev/null; } <"$dir/pipe" & reader=$!
pe-record -q --engine ptrace --keep-stacks -F 999 -d 2 -p $target >"$dir/pipe" 2>/dev/null & recorder=$!
until_so 'traced' is_traced $target
sleep 0.7
until_so 'runs while nobody reads' runs_on $target
wait $recorder $reader

# A second tracer is refused; so are the recorder itself and the kernel's threads.
pe-record -q --engine ptrace -F 99 -p $target -o "$dir/first.pe" & recorder=$!
until_so 'traced' is_traced $target
pe-record --engine ptrace -p $target -o "$dir/second.pe" 2>"$dir/err2"; expect 'already traced' 1 $?
expect 'its message' "pe-record: ptrace: $target: already traced by process $recorder (a debugger, strace, another profiler)" "$(cat "$dir/err2")"
kill $recorder; wait $recorder
kill $target
record -p 2 -o "$dir/kernel.pe"; expect 'a thread of the kernel' 1 $?
[ "$(cat /proc/2/comm 2>/dev/null)" != kthreadd ] ||
  expect 'its message' 'pe-record: ptrace: 2: a thread of the kernel, which cannot be traced' "$(cat "$dir/err")"
sh -c 'exec pe-record --engine ptrace -p $$ -o "$1"' sh "$dir/self.pe" 2>"$dir/err"; expect 'itself' 1 $?
grep -Eq '^pe-record: ptrace: [0-9]+: cannot stop itself$' "$dir/err" || fail "itself: $(cat "$dir/err")"
record -p 4194303 -o "$dir/none.pe"; expect 'no such process' 1 $?
expect 'its message' 'pe-record: --pid: 4194303: no such process' "$(cat "$dir/err")"
finish
