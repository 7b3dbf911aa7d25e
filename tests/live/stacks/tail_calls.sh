#!/bin/bash
# Functions that end in a jump are in the stacks of all recorders, as in a program without such jumps.
. "$(dirname "$0")/../lib.sh"
cat >"$dir/jumps.c" <<'END'
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;
static volatile int is_over;
void *volatile block;

APART void last_step(int n) {
  volatile char room[256];  /* so that it has a frame pointer */
  room[n & 255] = 1;
  for (int i = 0; i < n; ++i)
    sum += i;
}
APART void wrapper(int n) { sum += n; last_step(n); }
APART void outer(int n) { sum += 1; wrapper(n + 1); }
/* longjmp() skips the functions between: nothing is missing where it arrives. */
static jmp_buf arrival;
APART void rest(int n) {
  for (int i = 0; i < n; ++i)
    sum += i;
}
APART void leave(int n) {
  sum += n;
  if (sum > 0)
    longjmp(arrival, 1);
}
APART void left(int n) { sum += 1; leave(n); }
APART void arrive(int n) {
  if (setjmp(arrival) == 0)
    left(n);
  rest(n);
  sum += 1;
}
APART void *make(size_t n) { sum += n; return malloc(n); }
APART void worker(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    outer(100000);
    arrive(20000);
    block = make(1000);
    free(block);
  }
}
/* The owner of the lock sleeps with it, so that main() waits. */
APART void refresh(void) {
  pthread_mutex_lock(&mutex);
  usleep(2000);
  pthread_mutex_unlock(&mutex);
}
static void *owner(void *rounds) {
  for (int i = 0; i < *(int *)rounds; ++i) {
    refresh();
    usleep(1000);
  }
  is_over = 1;
  return NULL;
}
static void wait_for_lock(int rounds) {
  pthread_t thread;
  pthread_create(&thread, NULL, owner, &rounds);
  while (!is_over) {
    pthread_mutex_lock(&mutex);
    sum += 1;
    pthread_mutex_unlock(&mutex);
  }
  pthread_join(thread, NULL);
}
int main(int argc, char **argv) {
  if (argc > 2)
    wait_for_lock(atoi(argv[2]));
  else
    worker(atoi(argv[1]));
  return 0;
}
END
cc -O2 -fno-omit-frame-pointer -fno-ipa-icf -pthread -o "$dir/jumps" "$dir/jumps.c" || fail 'cc'
[ "$(objdump -d "$dir/jumps" | grep -c 'jmp.*<\(wrapper\|last_step\|leave\|malloc@plt\|pthread_mutex_unlock@plt\)>')" -ge 5 ] ||
  skip 'this compiler does not end these functions in jumps'

# check LABEL SHARE: of the samples in last_step(), or of the allocations, all have the functions that jumped
check() {
  at_least "$1: stacks with all functions, %" 99 "$2"
}
# with_callers FILE: the percentage of the weight below worker() that has outer() and wrapper()
with_callers() { grep -v ';worker$\|;make;\|;free' "$1" | grep ';last_step' >"$dir/steps"; share ';main;worker;outer;wrapper;last_step' "$dir/steps"; }

met=0
for engine in perf bpf ptrace signal; do
  pe-record -q --engine $engine -F 499 -o "$dir/r.pe" -- "$dir/jumps" 2000 2>/dev/null || continue
  pe-symbolize -q "$dir/r.pe" | stackfold >"$dir/folded"
  grep -q last_step "$dir/folded" || continue
  met=$((met + 1))
  check "$engine" "$(with_callers "$dir/folded")"
  grep ';rest' "$dir/folded" >"$dir/steps"
  at_least "$engine: stacks after longjmp(), %" 99 "$(share ';main;worker;arrive;rest' "$dir/steps")"
  pe-symbolize -q --no-tail-calls "$dir/r.pe" | stackfold >"$dir/folded"
  expect "$engine: with --no-tail-calls" 0.0 "$(share ';wrapper' "$dir/folded")"
  pe-symbolize -q "$dir/r.pe" | stackfold --annotate >"$dir/folded"
  at_least "$engine: marks, %" 99 "$(grep ';last_step' "$dir/folded" >"$dir/steps"; share ';outer_\[t\];wrapper_\[t\];last_step' "$dir/steps")"
done
at_least 'engines that recorded it' 2 "$met"

if (perf record -q -e cpu-clock --call-graph fp -F 499 -o "$dir/perf.data" -- "$dir/jumps" 2000) >"$dir/perf" 2>&1; then
  pe-symbolize -q "$dir/perf.data" | stackfold >"$dir/folded"
  # Only the function that was called is sure to have run: a chain by frame pointers may lack a caller.
  grep -v ';worker$\|;make;\|;free' "$dir/folded" | grep ';last_step' >"$dir/steps"
  check 'perf record' "$(share ';main;worker;outer;last_step' "$dir/steps")"
else
  echo "skipped: perf.data, because perf record fails here: $(tail -1 "$dir/perf")"
fi

malloctrace -q -o "$dir/m.pe" -- "$dir/jumps" 20 2>"$dir/err" || fail "malloctrace: $(cat "$dir/err")"
pe-symbolize -q "$dir/m.pe" | stackfold -q >"$dir/folded"
grep ';worker' "$dir/folded" >"$dir/blocks"
check malloctrace "$(share ';worker;make' "$dir/blocks")"

if offcpu -q --locks -o "$dir/l.pe" -- "$dir/jumps" 0 20 2>"$dir/err"; then
  pe-symbolize -q "$dir/l.pe" | stackfold | grep ';owner;.*;--;\[mutex' >"$dir/locks"
  check 'offcpu --locks' "$(share ';owner;refresh;' "$dir/locks")"
else
  echo "skipped: locks, because offcpu --locks fails here: $(tail -1 "$dir/err")"
fi
[ "$failed" = 0 ] || cut -c1-300 "$dir/folded"
finish
