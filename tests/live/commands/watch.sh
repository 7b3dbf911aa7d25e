#!/bin/bash
# A watch keeps what its target does.  At each trigger it writes one file, which holds the slow function of that time.
# It goes on when its target restarts, its recorder is killed, its folder vanishes, or the disk is full.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
stackpipe() { "$PE_SCRIPTS/stackpipe" "$@"; }
has() { grep -qF -e "$2" "$3" || fail "$1: no '$2' in $(cat "$3")"; }  # LABEL TEXT FILE
export STATE_DIRECTORY=$dir/state
can_record --engine best 2>/dev/null || skip 'pe-record does not work here'

# The program works a little all the time.  At SIGUSR1 it is slow for a second of CPU time, and creates the next file slow-N.
cat >server.c <<'END'
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t asked;
static void ask(int number) { asked = number; }
static double used(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}
static void spin(double seconds) {
  for (double end = used() + seconds; used() < end;)
    for (volatile int i = 0; i < 10000; ++i) {}
}
__attribute__((noinline)) void slow_second(void) { spin(1); __asm__ volatile(""); }
__attribute__((noinline)) void usual(void) { spin(0.002); __asm__ volatile(""); }
int main(void) {
  signal(SIGUSR1, ask);
  for (int number = 0;;) {
    usual();
    usleep(100000);
    if (!asked)
      continue;
    asked = 0;
    slow_second();
    char name[20];
    snprintf(name, sizeof name, "slow-%d", number++);
    close(open(name, O_CREAT | O_WRONLY, 0600));
  }
}
END
cc -O1 -fno-optimize-sibling-calls -o a_server server.c || exit 1
start_server() { ./a_server & server=$!; await_program $server a_server; }
start_watch() { rm -f said; "$PE_SCRIPTS/stackpipe" watch -p a_server "$@" 2>said & watcher=$!; await_text 'watches a_server' said; }
segments() { find state/a_server/segments -name '*.pe' -size +0; }
await_segments() {  # waits until a recorder writes a segment that is not in the list
  for _ in $(seq 1200); do segments | grep -qvxF "${1:-none}" && return; sleep 0.05; done
  fail "no new segment: $(cat said)"
}
await_count() {  # COUNT TEXT FILE
  for _ in $(seq 1200); do [ "$(grep -cF -e "$2" "$3")" -ge "$1" ] && return; sleep 0.05; done
  fail "no $1 lines '$2': $(cat "$3")"
}
dumps() { find state/a_server/dumps -name "*$1*.folded" 2>/dev/null | sort; }
await_dumps() {  # COUNT PATTERN
  for _ in $(seq 1200); do [ "$(dumps "$2" | wc -l)" -ge "$1" ] && return; sleep 0.05; done
  fail "no $1 dumps of $2: $(cat said)"
}
# The CPU time of a function, in us
cpu_time() { awk -v name="$1" '!/^#/ && $0 ~ name && !/\[(sleep|lock|I\/O|waiting for a CPU|other)\]/ { n += $NF } END { print n + 0 }' "$2"; }

touch healthy
start_server
start_watch --on 'test -e healthy' --before 20s --after 1s --rest 1s --files 2 --format folded --metrics metrics.prom
await_segments
sleep 1  # the recorder has attached

# Each trigger has one file, and the slow second is in it.
for round in 0 1 2; do
  kill -USR1 $server
  await slow-$round
  rm healthy
  await_count $((round + 1)) "command: 'test -e healthy' ended with status 1" said
  touch healthy
  await_count $((round + 1)) 'command: wrote' said
  file=$(sed -n 's/.* command: wrote //p' said | tail -1)
  [ -s "$file" ] || { fail "round $round: no file: $(cat said)"; break; }
  at_least "round $round: CPU time of the slow second, in us" 700000 "$(cpu_time ';slow_second' "$file")"
done
expect 'the oldest file is removed' 2 "$(dumps command | wc -l)"

# Somebody draws from another shell, while the recording goes on.
stackpipe watch --dump a_server --last 2m -o all.folded 2>err || fail "--dump: $(cat err)"
within 'CPU time of three slow seconds, in us' 3000000 "$(cpu_time ';slow_second' all.folded)" 600000
stackpipe watch --dump --last 2m -o all.svg 2>err || fail "--dump: $(cat err)"
has 'a picture' slow_second all.svg
grep -q '\[sleep\]' all.folded || echo 'no waits here'
kill -USR1 $watcher
await_dumps 1 dump
stackpipe watch --list >list 2>err || fail "--list: $(cat err)"
grep -qE "^a_server +$watcher +recording +a_server" list || fail "--list: $(cat list)"
await_text 'stackpipe_watch_recording{watch="a_server"} 1' metrics.prom

# A second watch of the same name is refused; another name works.
stackpipe watch -p a_server 2>err; expect 'a second watch' 1 $?
has 'a second watch' 'another watch uses this folder' err

# The target ends, and comes back.
before=$(segments)
kill $server; wait $server 2>/dev/null
await_text 'no process has this name any more: waiting for one' said
start_server
await_text "process $server has this name: recording goes on" said
for file in $before; do [ -e "$file" ] || fail "$file is gone"; done
await_segments "$before"

# The recorder is killed.
recorder=$(pgrep -P $watcher -x pe-record)
before=$(segments)
kill -9 "$recorder"
await_text 'the recorder was killed (signal 9)' said
await_segments "$before"

# The folder vanishes.
mv state/a_server gone
await_text 'was removed, and is made again' said
await_segments
kill -USR1 $watcher
await_dumps 1 dump

# SIGTERM ends both, and all that is kept can be drawn.
recorder=$(pgrep -P $watcher -x pe-record)
kill $watcher
wait $watcher; expect 'SIGTERM: status' 0 $?
[ ! -d "/proc/$recorder" ] || fail 'the recorder still runs'
stackpipe watch --dump --last 10m -o end.folded 2>err || fail "--dump after the end: $(cat err)"
at_least 'what was kept at the end' 1 "$(cpu_time ';usual' end.folded)"
# A machine that lost its power leaves a segment whose end is missing.  The rest can be drawn, also while a new watch records.
last=$(segments | sort | tail -1)
truncate -s -40 "$last"
stackpipe watch --dump --last 10m -o cut.folded 2>err || fail "--dump of a cut segment: $(cat err)"
has 'a cut segment' 'truncated at byte' err
at_least 'what was kept before a cut' 1 "$(cpu_time ';usual' cut.folded)"
start_watch
await_segments "$(segments)"
stackpipe watch --dump --last 10m -o cut.svg 2>err || fail "--dump beside a cut segment: $(cat err)"
has 'beside a cut segment' usual cut.svg
kill $watcher
wait $watcher; expect 'SIGTERM beside a cut segment: status' 0 $?

# The wall clock is set back by an hour.
export WALL_CLOCK=$dir/ahead
echo 0 >ahead
before=$(segments)
LD_PRELOAD=$PE_WALL_CLOCK start_watch --on 'test -e healthy' --before 20s --after 1s --rest 1s --format folded
await_segments "$before"
echo -3600 >ahead
rm healthy
await_text 'command: wrote' said
touch healthy
file=$(sed -n 's/.* command: wrote //p' said | tail -1)
at_least 'the usual work in a file after the clock was set back, in us' 1 "$(cpu_time ';usual' "$file")"
LD_PRELOAD=$PE_WALL_CLOCK stackpipe watch --dump a_server --last 20s -o back.folded 2>err || fail "--dump after the clock was set back: $(cat err)"
at_least 'the usual work after the clock was set back, in us' 1 "$(cpu_time ';usual' back.folded)"
kill $watcher
wait $watcher; expect 'SIGTERM after the clock was set back: status' 0 $?
expect 'who may read it' 700 "$(stat -c %a state/a_server)"

# The disk is full for a moment.
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=1M none small 2>/dev/null; then
  STATE_DIRECTORY=$dir/small start_watch
  for _ in $(seq 1200); do [ -n "$(find small/a_server/segments -name '*.pe' -size +0 2>/dev/null)" ] && break; sleep 0.05; done
  head -c 2M /dev/zero >small/fill 2>/dev/null
  await_text 'No space left on device' said
  rm small/fill
  recorded() { find small/a_server/segments -name '*.pe' -newer marker 2>/dev/null | grep -q .; }
  touch marker
  for _ in $(seq 1200); do recorded && break; sleep 0.05; done
  recorded || fail "no segment after the disk was full: $(cat said; ls -la small/a_server/segments)"
  kill $watcher
  wait $watcher; expect 'SIGTERM after a full disk: status' 0 $?
  umount -l small
fi
kill $server
finish
