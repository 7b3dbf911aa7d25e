#!/bin/bash
# Threads recurse 50,000 calls deep.  Their stacks have more frames than a record holds, so reading all of their memory
# helps nobody: the recorder ends on time, and a line says that they are too deep.
. "$(dirname "$0")/../lib.sh"
cc -O1 -pthread -o "$dir/deep" -x c - <<'END' || fail 'not built'
#include <pthread.h>
#include <unistd.h>
static volatile long sum;
__attribute__((noinline)) static long dive(long left) {
  volatile char frame[64];
  frame[0] = (char)left;
  while (left == 0)
    ++sum;
  return dive(left - 1) + frame[0];
}
static void* run(void* depth) { return (void*)dive((long)depth); }
int main(void) {
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 16 << 20);
  for (int i = 0; i < 4; ++i)
    pthread_create(&thread, &attr, run, (void*)50000);
  pause();
}
END
recorded=0
for engine in perf bpf signal ptrace; do
  can_record --engine $engine 2>"$dir/err" || { echo "not $engine: $(cat "$dir/err")"; continue; }
  recorded=1
  pe-record -v --engine $engine -F 997 -d 1 -o "$dir/x.pe" -- "$dir/deep" 2>"$dir/err"; expect "$engine: status" 0 $?
  grep -q 'are incomplete; most ended in deep: too deep' "$dir/err" || fail "$engine: no line on deep stacks: $(cat "$dir/err")"
  rest=$(sed -nE 's/.*; ([0-9.]+) s of CPU after the end.*/\1/p' "$dir/err")
  at_least "$engine: s of CPU after the end, at most" "${rest:-9}" 0.1
done
[ $recorded = 1 ] || skip 'no engine'
finish
