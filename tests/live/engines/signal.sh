#!/bin/bash
# A command that samples itself gives the same result as counters: the shares of a known program and of its
# threads, and the programs that it forks, executes and loads.  Its behaviour does not change.  pe-record
# refuses commands that it cannot sample in this way, and reports the reason.
# shellcheck disable=SC2317 # some_time calls the functions
. "$(dirname "$0")/../lib.sh"
record() { pe-record -v --engine signal "$@" >"$dir/out" 2>"$dir/err"; }
record_deaf() { "$PE_DENY" "$@" >"$dir/out" 2>"$dir/err"; }
weighed() { fold "$1" --weight period "${@:2}"; }
said() { grep -Eq -- "$1" "$dir/err" || fail "not said: $1: $(cat "$dir/err")"; }
# The kernel sends such signals at its ticks.  If many programs run, a program is running at few of these
# ticks.  So the test repeats a recording whose shares are wrong.  If all are, the machine is too busy for such
# timers, and each closing line must tell how much time has no samples.
near() { awk -v w="$1" -v g="$2" 'BEGIN { d = w - g; exit !(d <= 5 && -d <= 5) }'; }
some_time() {
  local told=0
  for _ in 1 2 3 4; do
    "$@" && return
    grep -q 'CPU time without samples' "$dir/err" && told=$((told + 1))
  done
  [ "$told" = 4 ] || fail "$*: $(cat "$dir/folded")"
}

shares_hold() {
  record "$@" -o "$dir/shares.pe" -- "$PE_WORKLOAD" shares 2 || fail "shares: $(cat "$dir/err")"
  weighed "$dir/shares.pe" >"$dir/folded"
  near 50 "$(share ';main;work;fifty' "$dir/folded")" && near 30 "$(share ';main;work;thirty' "$dir/folded")" &&
    near 20 "$(share ';main;work;twenty' "$dir/folded")"
}
some_time shares_hold -F 1000
said '^pe-record: [0-9]+ samples in [0-9.]+ s, 0 lost, [0-9.]+ % of stacks complete'
grep 'CPU time without samples' "$dir/err" && fail 'a program that is sampled all the time'
at_least 'whole stacks' 99 "$(share '^workload;_start;.*;main;work;' "$dir/folded")"
expect 'the event' cpu-clock "$(perf script -i "$dir/shares.pe" -F event 2>/dev/null -G | sort -u | tr -d ' :')"
within 'CPU seconds in all' 2.0 "$(awk '{ n += $NF } END { print n / 1e9 }' "$dir/folded")" 0.25

# Eight threads: thread n does n parts of the work.  The test records all, one by its name, and none.
threads_hold() {
  local n
  record -F 499 -o "$dir/eight.pe" -- "$PE_SAMPLED" eight || fail "eight: $(cat "$dir/err")"
  weighed "$dir/eight.pe" >"$dir/folded"
  for n in 1 2 3 4 5 6 7 8; do
    near "$(awk -v n="$n" 'BEGIN { print 100 * n / 36 }')" "$(share "^t$n;.*spin_${n}[; ]" "$dir/folded")" || return 1
  done
}
some_time threads_hold
record -F 499 --thread t8 -o "$dir/one.pe" -- "$PE_SAMPLED" eight || fail "one thread: $(cat "$dir/err")"
fold "$dir/one.pe" >"$dir/one.folded"
expect 'the one thread that is wanted, %' 100.0 "$(share '^t8;' "$dir/one.folded")"
at_least 'its function, %' 90 "$(share '^t8;.*spin_8[; ]' "$dir/one.folded")"
record --thread nobody -o "$dir/none.pe" -- "$PE_SAMPLED" eight
expect 'samples of a thread that is not there' 125 $?
grep -qE '^pe-record: [0-9]+ samples? in' "$dir/err" && fail "a thread that is not there: $(cat "$dir/err")"
said 'nothing was recorded: the target ran for [0-9.]+ m?s, but not in a thread of --thread$'
said ": no thread 'nobody' was seen: choose one of 'sampled', '"

# The program forks children, which end in several ways, calls exec, and loads a library.  Short processes
# have names although they are gone.
record -F 499 -o "$dir/tree.pe" -- "$PE_SAMPLED" tree || fail "tree: $(cat "$dir/err")"
weighed "$dir/tree.pe" --pid >"$dir/folded"
for name in returned exited killed before_exec closed; do
  at_least "child: $name" 10 "$(share "spin_${name}[; ]" "$dir/folded")"
done
at_least 'processes in the stream' 4 "$(cut -d';' -f1 "$dir/folded" | sort -u | wc -l)"
record -F 499 -o "$dir/exec.pe" -- sh -c "'$PE_WORKLOAD' shares 0.5; exec '$PE_WORKLOAD' recursion 0.5" || fail "exec: $?"
weighed "$dir/exec.pe" >"$dir/folded"
at_least 'before the exec, %' 35 "$(share '^workload;_start;.*;work' "$dir/folded")"
at_least 'after it, %' 35 "$(share '^workload;_start;.*;dive' "$dir/folded")"
record -F 499 -o "$dir/plugin.pe" -- "$PE_WORKLOAD" "plugin=$PE_PLUGIN" 1 </dev/null || fail "a plugin: $(cat "$dir/err")"
fold "$dir/plugin.pe" --annotate >"$dir/folded"
at_least 'in the plugin, %' 80 "$(share 'plugin_spin_\[l\]' "$dir/folded")"

# The program has its own handler and timer, changes its stack, or gets a storm of signals.  It checks itself
# that nothing has changed.
for mode in own-handler own-itimer errno storm; do
  record -F 1000 -o "$dir/mode.pe" -- "$PE_SAMPLED" $mode || fail "$mode: status $?: $(cat "$dir/err")"
  pe-symbolize -q "$dir/mode.pe" >/dev/null || fail "$mode: the stream is damaged"
done
record -o "$dir/own.pe" -- bash -c "ulimit -i 0; exec '$PE_SAMPLED' own-itimer" || grep -q 'nothing was recorded' "$dir/err" || fail "own timer, no other: $(cat "$dir/err")"
said 'is no longer sampled: it uses ITIMER_PROF itself'
said ': [0-9]+ process(es)? sampled by ITIMER_PROF, without a timer for each thread: raise ulimit -i$'
said ': 1 time sampling ended early'

# pe-record returns the command's status, and does not redirect its output.
record -o "$dir/s.pe" -- sh -c 'echo hello; exit 7'; expect "the command's status" 7 $?
expect 'its output' hello "$(cat "$dir/out")"
record -o "$dir/s.pe" -- sh -c 'kill -9 $$'; expect 'killed by a signal' 137 $?
record -o "$dir/s.pe" -- "$dir/none"; expect 'not found' 127 $?
expect message "pe-record: $dir/none: No such file or directory" "$(tail -1 "$dir/err")"
: >"$dir/plain"; record -o "$dir/s.pe" -- "$dir/plain"; expect 'not executable' 126 $?
record -o /dev/full -- true; expect 'own failure' 125 $?

# The recording ends by its time or by a signal.  The samples up to that point are kept.
record -F 499 -d 1 -o "$dir/time.pe" -- "$PE_WORKLOAD" shares 60; expect 'ended by its time' 0 $?
weighed "$dir/time.pe" >"$dir/folded"; at_least 'recorded until then' 1 "$(wc -l <"$dir/folded")"
pe-record --engine signal -F 499 -o "$dir/int.pe" -- \
  sh -c "'$PE_WORKLOAD' shares 0.5; touch '$dir/sampled'; exec '$PE_WORKLOAD' shares 60" 2>"$dir/err" & recorder=$!
await "$dir/sampled"; kill -TERM $recorder; wait $recorder; expect 'ended by a signal' 0 $?
at_least 'samples until then' 1 "$(sed -n 's/^pe-record: \([0-9]*\) samples.*/\1/p' "$dir/err")"
# The recorder is killed: the command ends normally, and the programs that it starts print nothing.
pe-record -q --engine signal -o "$dir/killed.pe" -- \
  sh -c "touch '$dir/begun'; until [ -e '$dir/go' ]; do sleep 0.05; done
    '$PE_WORKLOAD' fork 1; echo \$? >'$dir/s'; mv '$dir/s' '$dir/status'" >"$dir/left" 2>&1 & recorder=$!
await "$dir/begun"; kill -9 $recorder; wait $recorder 2>/dev/null; touch "$dir/go"
await "$dir/status"
expect 'the status without a recorder' 0 "$(cat "$dir/status")"
expect 'what it says' '' "$(cat "$dir/left")"

# Stacks deeper than a copy are continued from the process's memory.
record -F 499 --stack-size 4096 -o "$dir/deep.pe" -- "$PE_WORKLOAD" recursion 1 || fail "deep: $(cat "$dir/err")"
said '% of stacks complete'
fold "$dir/deep.pe" >"$dir/folded"
at_least 'deep stacks from main' 80 "$(share '^workload;_start;.*;main;' "$dir/folded")"

# With the wall clock, a thread that sleeps has all the time that passes.
record --clock wall -F 99 -o "$dir/wall.pe" -- sleep 1.5 || fail "wall: $(cat "$dir/err")"
weighed "$dir/wall.pe" >"$dir/folded"
at_least 'asleep, %' 80 "$(share '^sleep;.*nanosleep' "$dir/folded")"

pe-record --clock wall -o "$dir/wall.pe" -- sleep 0.5 2>"$dir/err" || fail "wall, by whom it may be: $(cat "$dir/err")"
said '^pe-record: using the signal engine, with which the command samples itself: counters do not measure wall time \(--clock wall\)'

# There are more binaries and processes than descriptors.  Processes wait for their turn, and all stacks are
# unwound.
mkdir "$dir/many"
for n in $(seq 40); do
  cp "$PE_WORKLOAD" "$dir/many/w$n"; echo "'$dir/many/w$n' shares 0.1 &"
done >"$dir/many/run"
echo wait >>"$dir/many/run"
(ulimit -n 64; record -F 499 -o "$dir/many.pe" -- sh "$dir/many/run") || fail "few descriptors: $(cat "$dir/err")"
grep -Eq 'descriptors|too many open files|could not load' "$dir/err" && fail "few descriptors: $(cat "$dir/err")"
fold "$dir/many.pe" >"$dir/folded"
at_least 'whole stacks with few descriptors, %' 90 "$(share '^w[0-9]*;_start;.*;main;work;' "$dir/folded")"
# The recorder accepted the shell, its 40 children and the programs that these executed, although a tick may
# not have hit each of them.
said '; 81 programs and forked processes(;|$)'
# A program that would not start if another library is loaded first runs without ours.
printf 'int main(void) { return 5; }\n' >"$dir/main.c"
fake_sanitizer sampler_preload "$dir/main.c" "$dir/sanitized"
printf '#!%s\n' "$dir/sanitized" >"$dir/script"; chmod +x "$dir/script"
for how in "'$dir/sanitized'; exit \$?" "exec '$dir/sanitized'" "cd '$dir'; PATH=. sanitized; exit \$?" "'$dir/script'; exit \$?"; do
  record -o "$dir/s.pe" -- bash -c "$how"; expect "with AddressSanitizer: $how" 5 $?
  said ': 1 program with AddressSanitizer started without the library: not sampled: '
done
for how in posix_spawn vfork-execve execle; do
  record -o "$dir/s.pe" -- "$PE_BEGINS" $how "$dir/sanitized" x
  said ': 1 program with AddressSanitizer started without the library: not sampled: '
done

# The program forbids itself nearly all system calls and with them the time stamp counter, or only that
# counter.
cat >"$dir/strict.c" <<'END'
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void *spin(void *argument) {
  for (unsigned long i = 0; i < 150000000; i++)
    sink += i;
  return argument;
}
int main(int argc, char **argv) {
  pthread_t thread;
  if (argc > 1) {
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    pthread_create(&thread, NULL, spin, argv);
    spin(argv);
    pthread_join(thread, NULL);
    return 3;
  }
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
    return 4;
  spin(argv);
  return (int)syscall(SYS_exit, 3);
}
END
cc -O1 -pthread -o "$dir/strict" "$dir/strict.c"
for what in '' tsc; do
  for clock in cpu wall; do
    # shellcheck disable=SC2086 # no argument at all
    record -F 499 --clock $clock -o "$dir/strict.pe" -- "$dir/strict" $what; expect "strict, clock $clock: status" 3 $?
    fold "$dir/strict.pe" | grep -v '_clockjoin_ex;' >"$dir/folded"  # one of the threads may end long before the other
    at_least "strict, clock $clock: in spin, %" 80 "$(share '^strict;.*;spin' "$dir/folded")"
  done
done

# ThreadSanitizer: gcc's finds no error in the library, and its stacks are complete.  A program with Clang's,
# which is in the program itself, runs without the library.
cat >"$dir/races.cpp" <<'END'
#include <thread>
__attribute__((noinline)) static void spin() {
  for (unsigned long i = 0; i < 20000000; i++)
    asm volatile("");
}
int main() {
  for (int round = 0; round < 10; round++) {
    std::thread one(spin), other(spin);
    one.join();
    other.join();
  }
  return 3;
}
END
g++ -O1 -g -fsanitize=thread -o "$dir/races" "$dir/races.cpp"
record -F 499 -o "$dir/races.pe" -- "$dir/races"; expect 'ThreadSanitizer: status' 3 $?
grep -q 'WARNING: ThreadSanitizer' "$dir/err" && fail "ThreadSanitizer: $(cat "$dir/err")"
fold "$dir/races.pe" | grep ';spin' >"$dir/folded" || fail 'ThreadSanitizer: no sample in spin'
at_least 'ThreadSanitizer: whole stacks in spin, %' 90 "$(share '^races;.*clone.*;spin' "$dir/folded")"
if command -v clang++ >/dev/null; then
  clang++ -O1 -g -fsanitize=thread -o "$dir/races" "$dir/races.cpp"
  record -o "$dir/races.pe" -- "$dir/races"; expect "clang's ThreadSanitizer: status" 3 $?
  said "is not sampled: it is built with clang's ThreadSanitizer"
  malloctrace -o "$dir/heap.pe" -- "$dir/races" 2>"$dir/err"; expect "clang's ThreadSanitizer, malloctrace: status" 3 $?
  said "is not traced: it is built with clang's ThreadSanitizer"
fi

# These programs cannot load the library.
if [ -x /sbin/ldconfig ] && ! ldd /sbin/ldconfig >/dev/null 2>&1; then
  record -o "$dir/s.pe" -- /sbin/ldconfig -p; expect 'a static program' 125 $?
  said '^pe-record: signal: /sbin/ldconfig: is statically linked'
  record_deaf perf_event_open EPERM pe-record -o "$dir/s.pe" -- /sbin/ldconfig -p
  said "^pe-record: using the ptrace engine, which stops the target's threads: .*; nor by signal: /sbin/ldconfig: is statically linked"
fi
# If a program's files may not grow, messages about it do not harm it.
# shellcheck disable=SC2016 # for the shell that runs it
record -F 99 -o "$dir/s.pe" -- bash -c 'ulimit -f 0; "$0" shares 1' "$PE_WORKLOAD"; expect 'files that may not grow' 125 $?
said ': nothing was recorded: '

# The program calls execve directly, with an empty environment: in the same process, and in a child.
# shellcheck disable=SC2016 # not the shell's
begun_bare='
import ctypes, os, sys
how, program = sys.argv[1:]
words = (ctypes.c_char_p * 3)(program.encode(), b"3", None)
if how == "exec" or os.fork() == 0:
    ctypes.CDLL(None).syscall(59, words[0], words, (ctypes.c_char_p * 1)(None))
    os._exit(9)
os.wait()
'
for how in exec fork; do
  record -o "$dir/s.pe" -- python3 -c "$begun_bare" "$how" "$(command -v sleep)"
  said ': 1 program started that could not load the library: not sampled: '
done
# The closing line reports the CPU time of programs without the library, and of programs that end within a
# period.  The programs measure their own time, and print 0.01 s less, because the closing line rounds.
cat >"$dir/burn.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
  const double wanted = argc > 1 ? atof(argv[1]) : 0;
  struct timespec time;
  double used;
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    used = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
  } while (used < wanted);
  printf("%.2f\n", used - 0.01);
  return 0;
}
END
cc -O1 -static -o "$dir/burn-static" "$dir/burn.c"
cc -O1 -o "$dir/burn" "$dir/burn.c"
unsampled() { sed -nE 's/.*: ([0-9.]+) of [0-9.]+ s CPU time without samples of threads that run for less than one period \([0-9.]+ ms\), or of programs without the library \(static, set-user-ID\).*/\1/p' "$dir/err"; }
record -o "$dir/s.pe" -- sh -c "'$dir/burn-static' 0.7 && '$dir/burn' 0.5" || fail "a static program: $(cat "$dir/err")"
at_least "seconds of a static program, $(cat "$dir/err")" "$(head -1 "$dir/out")" "$(unsampled)"
# env has the library, and runs far below the period.
record -F 10 -o "$dir/s.pe" -- env "$dir/burn-static" 0.5; expect 'a static program alone' 125 $?
said ': nothing was recorded: the target ran for [0-9.]+ m?s, but in programs without the library \(static, set-user-ID\), or each'
record -F 20 -o "$dir/s.pe" -- bash -c "for ((i = 0; i < 400; i++)); do '$dir/burn' 0.002; done" ||
  grep -q 'nothing was recorded' "$dir/err" || fail "brief programs: $(cat "$dir/err")"
sampled=$(weighed "$dir/s.pe" 2>/dev/null | awk '{ n += $NF } END { print n / 1e9 }')  # some are running at a tick
at_least "seconds of brief programs, $(cat "$dir/err")" 0.79 "$(awk -v a="$(unsampled)" -v b="${sampled:-0}" 'BEGIN { print a + b }')"
said '; [0-9]+ programs and forked processes without samples'

# A program that gets a new environment still gets the library's settings.
record -o "$dir/s.pe" -- env -i "$PE_WORKLOAD" shares 1 || fail "env -i: $(cat "$dir/err")"
fold "$dir/s.pe" >"$dir/folded"
at_least 'with another environment, %' 90 "$(share ';main;work;' "$dir/folded")"
record_deaf memfd_create EPERM pe-record --engine signal -o "$dir/s.pe" -- true; expect 'no shared memory' 125 $?
said '^pe-record: signal: memory cannot be shared here'

# The user has no privileges.
[ "$(id -u)" = 0 ] || skip 'dropping rights needs root'
chmod 755 "$dir"; mkdir -m 777 "$dir/w"
cp "$PE_WORKLOAD" "$PE_DENY" "$PE_TOOLS/pe-record" "$PE_TOOLS/libsampler_preload.so" "$dir/"
setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all "$dir/deny_call" perf_event_open,ptrace EPERM \
  "$dir/pe-record" -F 499 -o "$dir/w/own.pe" -- "$dir/workload" shares 2 2>"$dir/err"; expect 'as nobody' 0 $?
said '^pe-record: using the signal engine, with which the command samples itself: perf_event_open\(2\) is blocked here'
fold "$dir/w/own.pe" >"$dir/folded"
within 'as nobody: fifty' 50 "$(share ';main;work;fifty' "$dir/folded")" 10
# The recorder accepts the samples of a program that drops its privileges.
record -F 499 -o "$dir/rights.pe" -- setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/workload" shares 1
fold "$dir/rights.pe" >"$dir/folded"
at_least 'of another user' 90 "$(share '^workload;_start;.*;main;work' "$dir/folded")"

# A thread that blocks the signal has no samples; it is counted after two checks, half a second apart.
blocks='
import signal, threading, time
def work():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF])
    end = time.thread_time() + 2
    while time.thread_time() < end: pass
thread = threading.Thread(target=work)
thread.start()
thread.join()
'
record -o "$dir/blocks.pe" -- python3 -c "$blocks"
said '1 thread not sampled, because SIGPROF is blocked'
finish
