#!/bin/bash
# Each trigger of a watch writes a file with the function of that time: the target is busy, one of its threads does not
# run, it has no CPU although it could run, or a call is slow.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
export STATE_DIRECTORY=$dir/state
can_record --engine best 2>/dev/null || skip 'pe-record does not work here'

# The first thread sleeps, until SIGUSR1 makes it work for a second of CPU time, in one call.  Thread "beat" sleeps for 20 ms
# at a time, until SIGUSR2 ends that: from then on it waits in hold() for the next SIGUSR2.
cat >server.c <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t asked, held;
static void ask(int number) { asked = 1; }
static void hold_on(int number) { held = !held; }
static double used(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}
__attribute__((noinline)) void slow_second(void) {
  for (double end = used() + 1; used() < end;)
    for (volatile int i = 0; i < 10000; ++i) {}
  __asm__ volatile("");
}
__attribute__((noinline)) void hold(void) {
  while (held)
    pause();
  __asm__ volatile("");
}
static void* beat(void* nothing) {
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, 0);
  for (;;) {
    usleep(20000);
    hold();
  }
}
int main(void) {
  sigset_t second;
  pthread_t thread;
  signal(SIGUSR1, ask);
  signal(SIGUSR2, hold_on);
  sigemptyset(&second);
  sigaddset(&second, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &second, 0);
  pthread_create(&thread, 0, beat, 0);
  pthread_setname_np(thread, "beat");
  for (;;) {
    usleep(100000);
    if (asked)
      slow_second();
    asked = 0;
  }
}
END
cc -O1 -pthread -fno-optimize-sibling-calls -o b_server server.c || exit 1
./b_server & server=$!
tid_of $server beat >/dev/null

start_watch() {  # OPTION...: watches with this trigger, until it records
  rm -rf said "$dir/state"
  "$PE_SCRIPTS/stackpipe" watch -p b_server --before 30s --after 1s --format folded "$@" 2>said & watcher=$!
  for _ in $(seq 1200); do [ -n "$(find state/b_server/segments -name '*.pe' -size +0 2>/dev/null)" ] && break; sleep 0.05; done
  sleep 1  # the recorder has attached
}
# end_watch REASON FUNCTION: the trigger has written a file with this function
end_watch() {
  await_text "b_server: $1: wrote " said
  file=$(sed -n "s/.*b_server: $1: wrote //p" said | head -1)
  grep -q "$2" "$file" || fail "$1: no $2: $(cat said; cat "$file")"
  kill $watcher
  wait $watcher; expect "$1: status" 0 $?
}

start_watch --on-busy 5%
kill -USR1 $server
end_watch busy ';slow_second'

start_watch --on-stall beat=5s
grep 'stall' said && fail 'it stalls without a reason'
kill -USR2 $server
await_text 'thread beat did not run for' said
kill -USR2 $server  # a wait has a stack when it has ended
end_watch stall_beat ';hold'

# A control group without CPU time
cpu=
if [ "$(id -u)" = 0 ] && [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
  cpu=/sys/fs/cgroup/cpu/stackpipe-watch-$$
  mkdir $cpu && echo 1000000 >$cpu/cpu.cfs_period_us && echo 1000 >$cpu/cpu.cfs_quota_us || cpu=
elif [ "$(id -u)" = 0 ] && grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
  cpu=/sys/fs/cgroup/stackpipe-watch-$$
  mkdir $cpu && echo '1000 1000000' >$cpu/cpu.max || cpu=
fi
if [ -n "$cpu" ]; then
  start_watch --on-stall 300ms
  kill -USR1 $server
  echo $server >$cpu/cgroup.procs
  await_text "no thread of process $server ran for" said
  echo $server >"$(dirname $cpu)/cgroup.procs"
  end_watch stall ';slow_second'
  rmdir $cpu
else
  echo 'not tested here: a control group without CPU time'
fi

# A slow call: probes need root
if pe-record -q --span slow_second -p $server -d 0.1 -o probed.pe 2>err || grep -q 'nothing was recorded' err; then
  start_watch --on-slow slow_second --longer 500ms
  kill -USR1 $server
  await_text 'slow_second took' said
  end_watch slow_slow_second ';slow_second'
else
  echo "not tested here: slow calls: $(cat err)"
fi
kill $server
finish
