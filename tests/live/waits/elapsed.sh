#!/bin/bash
# One recording of CPU time and waits, and --weight elapsed, beside a program that measures its phases.
. "$(dirname "$0")/../lib.sh"

# Without privileges for eBPF, or without a compiler for it, there is only one engine.
engines='perf bpf'
if ! pe-record -q --engine bpf --event cpu,waits -o "$dir/try.pe" -- sleep 0.1 2>"$dir/why"; then
  grep -q '^pe-record: .*eBPF: ' "$dir/why" || fail "bpf says: $(cat "$dir/why")"
  engines=perf
fi
own() { awk -v name="$1" '$1 == name || name == "" { n += $2 } END { print n + 0 }' "$dir/own"; }
# time_of PATTERN FILE: the microseconds of the stacks that match
time_of() { PATTERN=$1 awk '/^# / { next } $0 ~ ENVIRON["PATTERN"] { n += $NF } END { print n + 0 }' "$2"; }
# ms_between HH:MM:SS.mmm,HH:MM:SS.mmm
ms_between() { awk -F'[:,.]' -v t="$1" 'BEGIN { split(t, f); n = 3600000 * (f[5] - f[1]) + 60000 * (f[6] - f[2]) + 1000 * (f[7] - f[3]) + f[8] - f[4]; print (n + 86400000) % 86400000 }'; }
mkfifo "$dir/input"
cat >"$dir/woken.py" <<'END'
import os, subprocess, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(3)]
os.nice(10)
delay_us = lambda: int(open("/proc/self/schedstat").read().split()[1]) // 1000
before = delay_us()
for _ in range(60):
    time.sleep(0.005)
print(delay_us() - before)
for each in busy:
    each.kill()
END

run_engine() {  # uses $engine
  local failed_before=$failed
  record() { pe-record --engine "$engine" --event cpu,waits "$@"; }
  began=$(date +%s%N)
  record -o "$dir/e.pe" -- "$PE_ELAPSED" >"$dir/own" 2>"$dir/err"; expect 'status' 0 $?
  outside=$((($(date +%s%N) - began) / 1000))
  pe-symbolize -q "$dir/e.pe" -o "$dir/n.pe"
  stackfold "$dir/n.pe" --weight elapsed -o "$dir/elapsed.folded" || fail 'no elapsed time'
  stackfold "$dir/n.pe" -o "$dir/all.folded" 2>/dev/null

  grep -q ' s waited ([0-9.]* s [^(]*), [0-9]* CPU samples, 0 lost' "$dir/err" || fail "does not say what it waited for: $(cat "$dir/err")"

  # All of it is the time of the program: at least that of its phases, and less than that of the recorder.
  whole=$(time_of . "$dir/elapsed.folded")
  at_least 'elapsed time' "$(own '')" "$whole"
  at_least 'time of the whole command' "$whole" "$outside"
  # A part of the clock is all there, also of the segments of a recording that is kept.
  expect 'a part of the time' 500000 "$(stackfold -q "$dir/n.pe" --weight elapsed --time +300ms,+800ms | awk '{ n += $NF } END { print n }')"
  rm -rf "$dir/kept"
  record -q --keep 10m -o "$dir/kept" -- "$PE_ELAPSED" >"$dir/own.kept" & local recorder=$!
  until_so 'the program' pgrep -P $recorder >"$dir/started"
  sleep 0.3
  local part; part=$(date +%T.%3N); sleep 0.5; part+=,$(date +%T.%3N)
  wait $recorder
  pe-symbolize -q --time "$part" "$dir/kept" | stackfold -q --weight elapsed --time "$part" >"$dir/part.folded"
  # At either end the time is missing from which a thread ran, and of which no sample is left.
  local got wanted; got=$(time_of . "$dir/part.folded") wanted=$(ms_between "$part")
  at_least 'a part of the segments' $((wanted * 750)) "$got"
  at_least 'the most of a part of the segments' "$got" $((wanted * 1000))
  # Each phase has the time that it has measured, with what it waited for a CPU.
  for phase in alone:';run_alone;' two:';run_two;|;run_beside;' nap:';take_a_nap;' child:';wait_for_child;'; do
    within "elapsed time of ${phase%%:*}, in thousandths" "$(($(own "${phase%%:*}") * 1000 / whole))" \
      "$(($(time_of "${phase#*:}" "$dir/elapsed.folded") * 1000 / whole))" 40
  done
  # The nap is exact, and is no time of a CPU.  Its timer starts just before the thread leaves its CPU.
  nap=$(time_of ';take_a_nap;.*;\[sleep\] ' "$dir/elapsed.folded")
  at_least 'sleep' 299000 "$nap"
  at_least 'the longest sleep' "$nap" "$(own nap)"
  expect 'other waits in the nap' 0 "$(time_of ';take_a_nap;.*;\[(lock|I/O|child process|other wait)\] ' "$dir/all.folded")"
  # A thread that is stopped while it runs waits neither for memory nor in a call.
  at_least 'stopped' 200000 "$(time_of ';stop_child;use_cpu;.*;\[other wait\] ' "$dir/all.folded")"
  # One that is stopped while it sleeps continues to sleep: by another call, restart_syscall(2).
  at_least 'a sleep that was stopped' 400000 "$(time_of ';stop_sleeper;.*;\[sleep\] ' "$dir/all.folded")"
  # While a thread or a child ran, who waited for it did not hold up the program.
  expect 'elapsed time of joins' 0 "$(time_of ';\[(lock|child process)\] ' "$dir/elapsed.folded" | awk '{ print int($1 / 20000) }')"
  at_least 'waits for threads' 100000 "$(time_of ';run_two;.*;\[lock\] ' "$dir/all.folded")"
  at_least 'waits for the child of vfork(2)' 100000 "$(time_of ';lend_memory;.*;\[child process\] ' "$dir/all.folded")"
  at_least 'waits for the child' 250000 "$(time_of ';wait_for_child;.*;\[child process\] ' "$dir/all.folded")"
  [ "$failed" = 0 ] || { cat "$dir/own" "$dir/err"; cut -c1-300 "$dir/elapsed.folded"; }

  # A child waits for a CPU from its start on.
  record -q -o "$dir/crowd.pe" -- "$PE_ELAPSED" crowd 2>"$dir/err" || fail "crowd: $(cat "$dir/err")"
  stackfold "$dir/crowd.pe" -o "$dir/crowd.folded"
  at_least 'new processes, waiting for a CPU' 100000 "$(time_of '^elapsed;\[waiting for a CPU\] ' "$dir/crowd.folded")"

  # A thread that is woken beside busy processes waits for a CPU as long as the kernel says.
  record -q -o "$dir/woken.pe" -- python3 "$dir/woken.py" >"$dir/own" 2>"$dir/err" || fail "woken: $(cat "$dir/err")"
  slept=$(cat "$dir/own")
  pe-symbolize -q "$dir/woken.pe" | stackfold -o "$dir/woken.folded" 2>/dev/null
  delay=$(time_of '^python3.*nanosleep.*;\[waiting for a CPU\] ' "$dir/woken.folded")
  at_least 'the kernel: waits for a CPU' 50000 "$slept"
  at_least 'woken threads, waiting for a CPU' $((slept * 80 / 100)) "$delay"  # it may also be preempted, elsewhere
  at_least 'the longest wait for a CPU' "$delay" $((slept * 105 / 100 + 5000))

  # What waits since before the recording has that time, and no CPU could shorten it.  Its stack is not known to perf.
  cat "$dir/input" >"$dir/out" & reader=$!
  exec 3>"$dir/input"
  until grep -q '^0 ' "/proc/$reader/syscall"; do sleep 0.02; done  # it is in read(2)
  record -q -o "$dir/still.pe" -p $reader -d 0.5 3>&- 2>"$dir/err"
  stackfold "$dir/still.pe" --weight elapsed -o "$dir/still.folded"
  at_least 'time of a wait that lasts' 500000 "$(time_of '^cat;(.*;)?\[I/O\];\[still waiting\] ' "$dir/still.folded")"
  rm -f "$dir/before.pe"
  record -q -o "$dir/before.pe" -p $reader 3>&- 2>"$dir/err" & recorder=$!
  await_text . "$dir/before.pe"
  sleep 0.3
  exec 3>&-
  wait $recorder
  stackfold "$dir/before.pe" --weight elapsed -o "$dir/before.folded"
  at_least 'time of a wait that ends' 300000 "$(time_of '^cat;(.*;)?\[I/O\] ' "$dir/before.folded")"
  [ "$failed" = "$failed_before" ] || echo "that was the $engine engine"
}
for engine in $engines; do run_engine; done

# In another pid namespace, the kernel's records of wakings name threads by other numbers.
if [ "$(id -u)" = 0 ] && unshare -p -f --mount-proc true 2>/dev/null; then
  unshare -p -f --mount-proc "$PE_TOOLS/pe-record" --event cpu,waits -o "$dir/woken.pe" -- python3 "$dir/woken.py" >"$dir/own" 2>"$dir/err" ||
    fail "in a pid namespace: $(cat "$dir/err")"
  slept=$(cat "$dir/own")
  pe-symbolize -q "$dir/woken.pe" | stackfold -o "$dir/woken.folded" 2>/dev/null
  at_least 'in a pid namespace: woken threads, waiting for a CPU' $((slept * 80 / 100)) \
    "$(time_of '^python3.*nanosleep.*;\[waiting for a CPU\] ' "$dir/woken.folded")"
  ! grep -q 'woken threads' "$dir/err" || fail "in a pid namespace: $(cat "$dir/err")"
fi

# Recordings without that say what to do, also those of single threads and of the whole machine.
pe-record -q -o "$dir/plain.pe" -- "$PE_ELAPSED" >"$dir/out"
pe-record -q --event cpu,waits -o "$dir/thread.pe" -t $$ -d 0.2 2>"$dir/err"
pe-record -q --event cpu,waits -o "$dir/all.pe" -a -d 0.2 2>"$dir/err"
for stream in plain thread all; do
  expect "$stream: status" 1 "$(stackfold -q --weight elapsed "$dir/$stream.pe" >/dev/null 2>"$dir/why"; echo $?)"
  grep -q 'record by pe-record --event cpu,waits, whole processes' "$dir/why" || fail "$stream: says: $(cat "$dir/why")"
done
finish
