#!/bin/bash
# Waits that do not end, or end with their process; too many waits; and missing privileges.
. "$(dirname "$0")/../lib.sh"
[ "$(id -u)" = 0 ] || skip 'setting perf_event_paranoid and dropping rights needs root'
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)

# waited PATTERN FILE: prints the microseconds of the matching stacks
waited() { PATTERN=$1 awk '$0 ~ ENVIRON["PATTERN"] { n += $NF } END { print n + 0 }' "$2"; }
# count WHAT FILE: prints N of "N WHAT" in a closing line, or 0
count() { grep -oE "[0-9]+ $1" "$2" | head -1 | cut -d' ' -f1 | grep . || echo 0; }

# await_call NUMBER PID: waits until the process is blocked in this system call (proc(5), /proc/PID/syscall).  On a busy
# machine, a program may start only long after its shell has continued.
await_call() {
  for _ in $(seq 1200); do grep -q "^$1 " "/proc/$2/syscall" 2>/dev/null && return; sleep 0.02; done
  fail "$2 is not in system call $1"
}
read_call=0 nanosleep_call=230

# Without privileges for eBPF, or without a compiler for it, there is only one engine.
offcpu -q --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>/dev/null && engines='perf bpf' || engines=perf

run_engine() {  # uses $engine
  local failed_before=$failed
  engine_offcpu() { offcpu -v --engine "$engine" "$@"; }
  # A wait that a signal ends lasts until the signal, and is not reported as still waiting.
  engine_offcpu -o "$dir/k.pe" -- "$PE_WAITS" killed >/dev/null 2>"$dir/err"; expect 'killed: status' 0 $?
  fold "$dir/k.pe" >"$dir/k.folded"
  at_least 'killed while it waited' 390000 "$(waited ';main;[^;]*killed_case;wait_in_read;' "$dir/k.folded")"
  expect 'killed, and still waiting' 0 "$(waited 'still waiting' "$dir/k.folded")"

  # The recording has nothing of other processes, which start all the time.
  cp "$(command -v true)" "$dir/stranger"
  while :; do "$dir/stranger"; sleep 0.02; done & strangers=$!
  engine_offcpu -o "$dir/own.pe" -- sleep 0.4 2>"$dir/err"; expect 'among others: status' 0 $?
  kill $strangers
  grep -qa /sleep "$dir/own.pe" || fail "no mapping of the command: $(cat "$dir/err")"
  ! grep -qa stranger "$dir/own.pe" || fail 'the recording has other processes'

  # A wait that continues counts up to the end of the recording, with a mark.
  sleep 100 & sleeper=$!
  await_program $sleeper sleep
  await_call $nanosleep_call $sleeper
  engine_offcpu -p $sleeper -d 0.3 -o "$dir/before.pe" 2>"$dir/err"
  status=$?
  if [ "$engine" = bpf ]; then  # blocked.sh has more of these
    expect 'waits all the time: status' 0 $status
    fold "$dir/before.pe" >"$dir/before.folded"
    grep -q '^sleep;.*nanosleep;.*;\[still waiting\] [0-9]*$' "$dir/before.folded" || fail "no wait: $(cat "$dir/before.folded" "$dir/err")"
  else
    expect 'waits all the time: status' 1 $status
    grep -q '^offcpu: nothing was recorded: the target slept all the time$' "$dir/err" || fail "why: $(cat "$dir/err")"
    expect 'waits that nothing is known of' 0 "$(count 'waits? in' "$dir/err")"
    grep -q ': 1 thread without a finished wait, because it ran or still waits: with this engine a wait that began before .* use --engine bpf, or pe-record ' "$dir/err" ||
      fail "closing line: $(cat "$dir/err")"
    # The command that this line names shows the wait.
    eval "$(sed -nE "s/.* use --engine bpf, or (.*) -p PID (.*)/\1 -p $sleeper \2/p" "$dir/err")" 2>/dev/null >"$dir/now.folded"
    grep -q '^sleep;.*nanosleep' "$dir/now.folded" || fail "what still waits: $(cat "$dir/now.folded")"
  fi
  kill -STOP $sleeper
  rm -f "$dir/p.pe"
  engine_offcpu -p $sleeper -d 3 -o "$dir/p.pe" 2>"$dir/err" & recorder=$!
  await_text . "$dir/p.pe"
  sleep 1
  kill -CONT $sleeper
  wait $recorder; expect 'still waiting: status' 0 $?
  kill $sleeper
  fold "$dir/p.pe" >"$dir/p.folded"
  grep -q ';\[still waiting\] [0-9]*$' "$dir/p.folded" || fail "no mark: $(cat "$dir/p.folded" "$dir/err")"
  grep -q '; 1 still waiting' "$dir/err" || fail "closing line: $(cat "$dir/err")"
  [ "$engine" != perf ] || grep -q '; 1 wait from before the recording left out' "$dir/err" || fail "closing line: $(cat "$dir/err")"

  # A thread that is not the first calls exec, and becomes the first.
  engine_offcpu -o "$dir/e.pe" -- "$PE_WAITS" exec >"$dir/said" 2>"$dir/err"; expect 'exec: status' 0 $?
  fold "$dir/e.pe" >"$dir/e.folded"
  at_least 'after exec' 400000 "$(waited '^exe;.*;main;[^;]*nanosleep_case;wait_in_nanosleep;' "$dir/e.folded")"
  expect 'exec, records dropped' 0 "$(count 'waits? dropped where' "$dir/err")"

  # An endless wait starts before the recorder knows the program.  Its copy of the stack is too short, or ends
  # at a page that was never touched.
  for case in deep hole; do
    offcpu -v --engine "$engine" -o "$dir/early.pe" -- "$PE_WAITS" $case >/dev/null 2>"$dir/err" & recorder=$!
    for _ in $(seq 1200); do program=$(pgrep -P $recorder -x waits) && break; sleep 0.02; done
    await_call $read_call "$program"
    sleep 0.3
    kill -TERM $recorder
    wait $recorder; expect "$case: status" 0 $?
    fold "$dir/early.pe" >"$dir/early.folded"
    grep -qE ';main;[^;]*'$case'_case;.*;wait_deep;wait_in_read;.*;\[still waiting\] [0-9]+$' "$dir/early.folded" ||
      fail "$case: $(cat "$dir/err" "$dir/early.folded")"
  done

  # Switches at full speed: offcpu counts every missing stack, and the times stay right.
  engine_offcpu --preempted -o "$dir/f.pe" -- "$PE_WAITS" pingpong >"$dir/said" 2>"$dir/err"; expect 'pingpong: status' 0 $?
  fold "$dir/f.pe" >"$dir/f.folded" 2>"$dir/err.fold"
  said=$(awk '$1 == "pingpong" { print $2 }' "$dir/said") switches=$(awk '$1 == "switches" { print $2 }' "$dir/said")
  within 'pingpong: waits, as the kernel counts them' "$switches" \
    $(($(count 'waits? in' "$dir/err") + $(count 'waits? dropped where' "$dir/err"))) $((switches / 100 + 10))
  at_least 'pingpong: microseconds, both processes wait no longer than they live' \
    "$(waited '^waits[; ]' "$dir/f.folded")" $((2 * said + 100000))
  stackless=$(count 'waits? without a stack' "$dir/err")
  [ "$stackless" = 0 ] || at_least "samples lost; $(cat "$dir/err")" "$stackless" "$(count lost "$dir/err")"
  [ "$(count lost "$dir/err")" = 0 ] || grep -q 'samples lost while recording' <(fold "$dir/f.pe" 2>&1 >/dev/null) || fail 'losses are not in the stream'

  # Programs end right after their start.  offcpu may read records of their last waits after it reads that
  # they ended.
  engine_offcpu --preempted -o "$dir/b.pe" -- "$PE_WAITS" brief 2>"$dir/err"; expect 'brief: status' 0 $?
  at_least 'brief: waits' 1000 "$(count 'waits? in' "$dir/err")"
  stackless=$(count 'waits? without a stack' "$dir/err")
  [ "$stackless" = 0 ] || at_least "brief: samples lost; $(cat "$dir/err")" "$stackless" "$(count lost "$dir/err")"

  # The whole system, with a thread that waits.  Making the tables of all programs may take long.
  while :; do "$PE_WAITS" nanosleep nanosleep nanosleep; done >/dev/null & program=$!
  engine_offcpu -a --min-us 20000 -d 1.5 -o "$dir/a.pe" 2>"$dir/err"; expect 'whole system: status' 0 $?
  kill $program; wait $program 2>/dev/null
  fold "$dir/a.pe" >"$dir/a.folded"
  at_least 'a program in the whole system' 100000 "$(waited '^waits;.*;main;.*;wait_in_nanosleep;' "$dir/a.folded")"
  expect 'idle threads' 0 "$(waited '^swapper' "$dir/a.folded")"
  # Kernel threads have no user frames, so nothing is lost.
  engine_offcpu -a --user-only -d 0.5 -o "$dir/u.pe" 2>"$dir/err"; expect 'user frames only: status' 0 $?
  at_least 'waits without frames' 1 "$(fold "$dir/u.pe" | grep -cv ';')"
  expect 'user frames only: stacks that were lost' 0 "$(count 'waits? without a stack' "$dir/err")"
  [ "$failed" = "$failed_before" ] || echo "that was the $engine engine"
}
for engine in $engines; do run_engine; done

# Recording one thread of several records no other threads.
for engine in $engines; do
  "$PE_WAITS" read read read read read read read read >/dev/null & program=$!
  await_program $program waits
  offcpu --engine "$engine" -t $program -d 0.4 -o "$dir/t.pe" 2>"$dir/err"; expect "$engine: one thread: status" 0 $?
  kill $program; wait $program 2>/dev/null
  expect "$engine: waits of another thread" 0 "$(waited ';[^;]*write_slowly;' <(fold "$dir/t.pe"))"
  at_least "$engine: one thread waits" 100000 "$(waited ';main;' <(fold "$dir/t.pe"))"
done

# An engine leaves targets that it cannot record to the other engine, or reports them.
offcpu --engine bpf --cgroup / -d 0.1 -o "$dir/c.pe" 2>"$dir/err"; expect 'control group by eBPF: status' 1 $?
expect 'control group by eBPF' 'offcpu: --engine bpf: --cgroup needs the perf engine' "$(cat "$dir/err")"

# A target that cannot be recorded is reported in one line.
bash -c 'sleep 0.01 & exec sleep 100' & parent=$!
until zombie=$(pgrep -P $parent -r Z); do sleep 0.05; done
for tool in offcpu pe-record; do
  "$tool" -p "$zombie" -d 0.1 -o "$dir/z.pe" 2>"$dir/err"; expect "$tool, a zombie: status" 1 $?
  expect "$tool, a zombie" "$tool: --pid: $zombie: has ended (a zombie)" "$(cat "$dir/err")"
  (ulimit -n 10; exec "$tool" -p $parent -d 0.1 -o "$dir/z.pe") 2>"$dir/err"; expect "$tool, few files: status" 1 $?
  expect "$tool, few files: lines" 1 "$(grep -c 'ulimit -n allows$' "$dir/err")"
  expect "$tool, few files: other lines" '' "$(grep -vE 'ulimit -n allows$' "$dir/err")"
done
kill $parent

# The recorder is stopped for so long that rings overflow.  It counts the lost records, and reports that waits
# are missing.
"$PE_WAITS" pingpong pingpong pingpong pingpong pingpong pingpong >/dev/null & program=$!
offcpu --engine perf --mmap-pages 1 -p $program -o "$dir/l.pe" 2>"$dir/err" & recorder=$!
until [ -s "$dir/l.pe" ]; do kill -0 $recorder 2>/dev/null || break; sleep 0.05; done
kill -STOP $recorder; sleep 1; kill -CONT $recorder
sleep 0.2; kill -TERM $recorder
wait $recorder; expect 'stopped for a while: status' 0 $?
pkill -P $program; kill $program
grep -qE ': [0-9]+ records of switches and processes lost, so waits are missing: ' "$dir/err" || fail "stopped for a while: $(cat "$dir/err")"

# Without privileges, users get times of their own processes without stacks, and offcpu reports this.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
chmod 755 "$dir"; mkdir -m 777 "$dir/w"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all "$@"; }
cp "$PE_WAITS" "$(command -v offcpu)" "$dir/"
echo 2 >/proc/sys/kernel/perf_event_paranoid
nobody "$dir/offcpu" -o "$dir/w/n.pe" -- "$dir/waits" nanosleep >/dev/null 2>"$dir/err"; expect 'as nobody: status' 0 $?
grep -q '^offcpu: perf_event_paranoid is 2; need 1 or CAP_PERFMON for stacks; recording only the times of each thread$' "$dir/err" ||
  fail "message at 2: $(cat "$dir/err")"
expect 'what stacks would need' 1 "$(grep -cE 'stack|--' "$dir/err")"
fold "$dir/w/n.pe" >"$dir/n.folded"
expect 'threads without stacks' 'waits' "$(grep -v ';' "$dir/n.folded" | sed 's/ [0-9]*$//')"
at_least 'time, as nobody' 400000 "$(waited '^waits ' "$dir/n.folded")"
nobody "$dir/offcpu" -a -d 0.1 -o "$dir/w/a.pe" 2>"$dir/err"; expect 'whole system as nobody' 1 $?
expect 'its message' 'offcpu: perf_event_paranoid is 2; need 0 or CAP_PERFMON to record other processes' "$(tail -1 "$dir/err")"
nobody "$dir/offcpu" --state S -o "$dir/w/s.pe" -- true 2>"$dir/err"; expect 'states as nobody' 125 $?
expect 'its message' 'offcpu: sched:sched_switch: /sys/kernel/tracing/events may not be read: need root, or its group' "$(cat "$dir/err")"
nobody "$dir/offcpu" --engine bpf -o "$dir/w/b.pe" -- "$dir/waits" nanosleep >/dev/null 2>"$dir/err"; expect 'eBPF as nobody' 125 $?
grep -q '^offcpu: --engine bpf: eBPF: ' "$dir/err" || fail "eBPF as nobody: $(cat "$dir/err")"

# The lock limit has made the rings of this user small, and they are full: neither larger ones nor the other engine
# are possible without more privileges.
echo 1 >/proc/sys/kernel/perf_event_paranoid
(exec setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/waits" pingpong pingpong pingpong pingpong >/dev/null) & program=$!
await_program $program waits
(ulimit -l 1000; exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all \
  "$dir/offcpu" --engine perf -p $program -o "$dir/w/l.pe" 2>"$dir/err") & recorder=$!
until [ -s "$dir/w/l.pe" ]; do kill -0 $recorder 2>/dev/null || break; sleep 0.05; done
kill -STOP $recorder; sleep 1; kill -CONT $recorder
sleep 0.2; kill -TERM $recorder
wait $recorder; expect 'full rings as nobody: status' 0 $?
kill $program
grep -q ' lost, because the rings were full: raise kernel.perf_event_mlock_kb or ulimit -l$' "$dir/err" || fail "full rings as nobody: $(cat "$dir/err")"
! grep -qE 'raise --mmap-pages|--engine bpf' "$dir/err" || fail "advice that nobody cannot follow: $(cat "$dir/err")"
finish
