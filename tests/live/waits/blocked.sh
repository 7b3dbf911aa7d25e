#!/bin/bash
# Threads that wait since before the recording: each has its whole time in it, with its stack, its kind, and its waker.
. "$(dirname "$0")/../lib.sh"

offcpu -q --engine bpf -o "$dir/try.pe" -- sleep 0.1 2>"$dir/why" || skip "no eBPF here: $(cat "$dir/why")"

# start ARGUMENT...: starts the program, whose number is then in $target, and waits until all of its threads wait
start() {
  rm -f "$dir/ready"
  "$PE_BLOCKED" "$@" >"$dir/ready" & target=$!
  for _ in $(seq 1200); do
    [ ! -s "$dir/ready" ] || return
    kill -0 $target 2>/dev/null || { wait $target; skip "userfaultfd(2) is not permitted: status $?"; }
    sleep 0.02
  done
  fail "$* is not ready"
}
stop() { kill -KILL $target; wait $target 2>/dev/null; }
# time_of PATTERN FILE: the microseconds of the stacks that match
time_of() { PATTERN=$1 awk '/^# / { next } $0 ~ ENVIRON["PATTERN"] { n += $NF } END { print n + 0 }' "$2"; }

# Each way to wait, by both tools: all threads have the same time, that of the recording.
start kinds
offcpu -v --engine bpf -p $target -d 0.5 -o "$dir/w.pe" 2>"$dir/err"; expect 'offcpu: status' 0 $?
fold "$dir/w.pe" >"$dir/w.folded"
pe-record -v --event cpu,waits -p $target -d 0.5 -o "$dir/e.pe" 2>"$dir/err.e"; expect 'pe-record: status' 0 $?
fold "$dir/e.pe" >"$dir/e.folded"
for way in 'main;sleep_long:sleep' wait_for_lock:lock wait_for_pipe:I/O wait_in_poll:I/O poll_nothing:sleep \
  select_nothing:sleep 'start_thread;sleep_long:sleep' 'wait_for_child:child process' 'wait_for_page:page fault'; do
  grep -qE "^blocked;.*;${way%%:*};.*;\[still waiting\] [0-9]+\$" "$dir/w.folded" || fail "offcpu has no ${way%%:*}: $(cat "$dir/w.folded")"
  grep -qE "^blocked;.*;${way%%:*};.*;\[${way#*:}\];\[still waiting\] [0-9]+\$" "$dir/e.folded" ||
    fail "pe-record has no ${way%%:*}: $(cat "$dir/e.folded")"
done
expect 'different times of offcpu' 1 "$(grep -v '^# ' "$dir/w.folded" | awk '{ print $NF }' | sort -u | wc -l)"
expect 'different times of pe-record' 1 "$(grep -v '^# ' "$dir/e.folded" | awk '{ print $NF }' | sort -u | wc -l)"
at_least 'the time of one, microseconds' 500000 "$(time_of ';wait_for_pipe;' "$dir/w.folded")"
grep -qE '^offcpu: 9 waits in .* 100.0 % of stacks complete' "$dir/err" || fail "says: $(cat "$dir/err")"
! grep -q 'without a wait' "$dir/err" || fail "says: $(cat "$dir/err")"
# The whole machine has these as well.
offcpu -q --engine bpf -a -d 0.2 -o "$dir/a.pe" 2>"$dir/err"
at_least 'with --all' 200000 "$(time_of '^blocked;.*;wait_for_child;' <(fold "$dir/a.pe"))"
# Of the locks, only the futex.
offcpu -q --locks -p $target -d 0.2 -o "$dir/l.pe" 2>"$dir/err"
fold "$dir/l.pe" >"$dir/l.folded"
expect 'with --locks, other stacks than the lock' 0 "$(grep -v '^# ' "$dir/l.folded" | grep -vc ';wait_for_lock;')"
grep -q '\[mutex taken\]' "$dir/l.folded" || fail "no lock: $(cat "$dir/l.folded")"
stop

# Very many threads, whose first one has ended.
start sleepers 2000
offcpu -v --engine bpf -p $target -d 0.5 -o "$dir/many.pe" 2>"$dir/err"; expect '2000 threads: status' 0 $?
fold "$dir/many.pe" >"$dir/many.folded"
expect 'stacks of 2000 threads' 1 "$(grep -vc '^# ' "$dir/many.folded")"
grep -q '^offcpu: 2000 waits in .* 100.0 % of stacks complete' "$dir/err" || fail "says: $(cat "$dir/err")"
at_least 'time of 2000 threads' 1000000000 "$(time_of ';start_thread;sleep_long;' "$dir/many.folded")"
stop
# Nothing of CPU time is known of such a process, but it has not ended.
start sleepers 2
pe-record -q -p $target -d 0.2 -o "$dir/idle.pe" 2>"$dir/err"
grep -q 'the target slept all the time' "$dir/err" || fail "says: $(cat "$dir/err")"
stop

# A wait that ends in the recording, and who ended it.  With locks as well, it is the same.
mkfifo "$dir/input"
for more in '' --locks; do
  cat "$dir/input" >"$dir/out" & target=$!
  exec 3>"$dir/input"
  until grep -q '^0 ' "/proc/$target/syscall"; do sleep 0.02; done  # it is in read(2)
  rm -f "$dir/b.pe"
  # shellcheck disable=SC2086
  pe-record -q --event cpu,waits --wakers $more -o "$dir/b.pe" -p $target 3>&- 2>"$dir/err" & recorder=$!
  await_text . "$dir/b.pe"
  sleep 0.3
  exec 3>&-
  wait $recorder; expect "waker $more: status" 0 $?
  fold "$dir/b.pe" >"$dir/b.folded"
  fold "$dir/b.pe" --weight elapsed >"$dir/elapsed.folded"
  for file in b elapsed; do
    at_least "$file: a wait that ends $more" 300000 "$(time_of '^cat;.*;\[I/O\];--;.*;(bash|blocked\.sh) [0-9]*$' "$dir/$file.folded")"
  done
  expect "wakers of waits for a CPU $more" 0 "$(grep -c 'waiting for a CPU\];--' "$dir/b.folded")"
done

# An interpreter that was known before the recording.
if command -v python3 >/dev/null; then
  python3 -c 'import time
def outer(): inner()
def inner(): time.sleep(1000)
outer()' & target=$!
  until grep -q '^230 ' "/proc/$target/syscall"; do sleep 0.02; done  # it is in clock_nanosleep(2)
  offcpu -v --engine bpf -p $target -d 0.3 -o "$dir/py.pe" 2>"$dir/err"
  fold "$dir/py.pe" >"$dir/py.folded"
  if grep -q 'frames of Python' "$dir/err"; then
    grep -q ';<module>;outer;inner;.*;\[still waiting\] ' "$dir/py.folded" || fail "no functions: $(cat "$dir/py.folded" "$dir/err")"
  fi
  stop
fi

# Locks of the kernel are locks: here, that of a process's mappings.
pe-record -q --event cpu,waits -o "$dir/m.pe" -- "$PE_BLOCKED" memory 700 2>"$dir/err" || fail "memory: $(cat "$dir/err")"
fold "$dir/m.pe" >"$dir/m.folded"
locks=$(time_of ';change_mappings;.*;\[lock\] ' "$dir/m.folded")
at_least 'waits for the lock of mappings' 20000 "$locks"
others=$(time_of ';change_mappings;.*;\[(I/O|other wait|page fault)\] ' "$dir/m.folded")
at_least 'a hundredth of them, in place of other waits' "$others" $((locks / 100))
finish
