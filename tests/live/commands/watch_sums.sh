#!/bin/bash
# A function is slow for a second in every few.  What a watch keeps has each of these seconds, with the time that the
# program itself measures, and that of a plain recording of the same time: in the file of each trigger, and in each range.
. "$(dirname "$0")/../lib.sh"
cd "$dir" || exit 1
export STATE_DIRECTORY=$dir/state
can_record --engine best 2>/dev/null || skip 'pe-record does not work here'
pe-record -q -e cpu,waits -o try.pe -- sleep 0.1 2>why || skip "no waits here: $(cat why)"

# At SIGUSR1, the program is slow for a second: it sleeps 12 times, and runs between.  It appends to the file "calls":
# when that began and ended on the recordings' clock, and the microseconds that it slept and ran.  Then it creates "slow".
cat >server.c <<'END'
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t asked;
static void ask(int number) { asked = number; }
static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
__attribute__((noinline)) static void spin(double wanted) {
  for (double end = seconds(CLOCK_THREAD_CPUTIME_ID) + wanted; seconds(CLOCK_THREAD_CPUTIME_ID) < end;)
    for (volatile int i = 0; i < 10000; ++i) {}
}
__attribute__((noinline)) static double slow_second(void) {
  double slept = 0;
  for (int i = 0; i < 12; ++i) {
    const double before = seconds(CLOCK_MONOTONIC);
    usleep(50000);
    slept += seconds(CLOCK_MONOTONIC) - before;
    spin(0.03);
  }
  return slept;
}
int main(void) {
  signal(SIGUSR1, ask);
  for (;;) {
    usleep(20000);
    if (!asked)
      continue;
    asked = 0;
    const double begin = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_THREAD_CPUTIME_ID);
    const double slept = slow_second();
    FILE* calls = fopen("calls", "a");
    fprintf(calls, "%.6f %.6f %.0f %.0f\n", begin, seconds(CLOCK_MONOTONIC), slept * 1e6,
            (seconds(CLOCK_THREAD_CPUTIME_ID) - used) * 1e6);
    fclose(calls);
    close(open("slow", O_CREAT | O_WRONLY, 0600));
  }
}
END
cc -O1 -fno-optimize-sibling-calls -o s_server server.c || exit 1
./s_server & server=$!
await_program $server s_server
# Microseconds of the slow function: waits, with those for a CPU, and time on CPUs
waited() { awk '!/^#/ && /;slow_second;/ && /\[(sleep|waiting for a CPU)\]/ && !/;spin/ { n += $NF } END { print n + 0 }' "$1"; }
ran() { awk '!/^#/ && /;slow_second[; ]/ && !/\[(sleep|lock|I\/O|waiting for a CPU|other wait)\]/ { n += $NF } END { print n + 0 }' "$1"; }
of_call() { awk -v call="$1" -v field="$2" 'NR == call { print $field }' calls; }  # NUMBER FIELD
await_line() {  # COUNT TEXT
  for _ in $(seq 1200); do [ "$(grep -cF -e "$2" said)" -ge "$1" ] && return; sleep 0.05; done
  fail "no $1 lines '$2': $(cat said)"
}

"$PE_SCRIPTS/stackpipe" watch -p s_server --on 'test ! -e slow' --before 6s --after 1s --rest 1s --format folded 2>said & watcher=$!
await_text 'watches s_server' said
for _ in $(seq 1200); do [ -n "$(find state/s_server/segments -name '*.pe' -size +0 2>/dev/null)" ] && break; sleep 0.05; done
pe-record -q -e cpu,waits -p $server -o plain.pe & plain=$!
sleep 1.5  # both have attached

rounds=3
for round in $(seq $rounds); do
  kill -USR1 $server
  await slow
  await_line "$round" "command: 'test ! -e slow' ended with status 1"
  rm slow
  await_line "$round" 'command: wrote'
  sleep 6  # so that the next file does not have this second
done
kill -TERM $plain; wait $plain
pe-symbolize -q plain.pe -o named.pe
expect 'calls' $rounds "$(wc -l <calls)"

for round in $(seq $rounds); do
  slept=$(of_call "$round" 3) used=$(of_call "$round" 4)
  # The file of the trigger has this second and no other.
  file=$(sed -n 's/.* command: wrote //p' said | sed -n "${round}p")
  [ -s "$file" ] || { fail "$round: no file: $(cat said)"; continue; }
  within "$round: waits of the trigger's file, in us" "$slept" "$(waited "$file")" $((slept / 20))
  at_least "$round: CPU time of the trigger's file, in us" $((used / 2)) "$(ran "$file")"
  # A range by the program's clock
  range=$(awk -v call="$round" 'NR == call { printf "%.6f,%.6f", $1 - 0.01, $2 + 0.01 }' calls)
  "$PE_SCRIPTS/stackpipe" watch --dump s_server --time "$range" -o "range-$round.folded" 2>err || fail "$round: --dump: $(cat err)"
  stackfold -q --annotate --time "$range" named.pe >"plain-$round.folded"
  kept=$(waited "range-$round.folded")
  within "$round: waits of the range, in us" "$slept" "$kept" $((slept / 20))
  within "$round: waits of a plain recording, in us" "$(waited "plain-$round.folded")" "$kept" $((slept / 100))
done

# All of it is the sum of its parts.
"$PE_SCRIPTS/stackpipe" watch --dump s_server --last 5m -o all.folded 2>err || fail "--dump: $(cat err)"
slept=$(awk '{ n += $3 } END { print n }' calls)
within 'waits of all, in us' "$slept" "$(waited all.folded)" $((slept / 20))
kill $watcher; wait $watcher; expect 'status' 0 $?
kill $server
finish
