#!/bin/bash
# A process goes on after its first thread has ended (pthread_exit(3) in main).  It is found by its name, and its stacks have
# names, although /proc/PID has no more memory and files.
. "$(dirname "$0")/../lib.sh"
name=goes_on_$$
cc -O1 -g -pthread -o "$dir/${name:0:15}" -x c - <<'END'
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) static void leaf(void) { for (unsigned i = 0; i < 1000000; ++i) sum += i; }
__attribute__((noinline)) static void go_on(void) { for (;;) { leaf(); __asm__ volatile(""); } }
static void* second(void* unused) {
  usleep(200000);  // until the first thread has ended
  close(1);
  go_on();
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, second, 0);
  pthread_exit(0);
}
END
"$dir/${name:0:15}" >"$dir/fifo" & target=$!
for _ in $(seq 500); do grep -q '^State:.*Z' "/proc/$target/status" && break; sleep 0.02; done
grep -q '^State:.*Z' "/proc/$target/status" || fail 'the first thread has not ended'

check() {  # LABEL ENGINE TARGET
  pe-record --engine "$2" -F 499 -p "$3" -d 1 -o "$dir/x.pe" 2>"$dir/err" || { fail "$1: $(cat "$dir/err")"; return; }
  fold "$dir/x.pe" >"$dir/folded"
  at_least "$1: stacks with both functions, %" 90 "$(share ';second;go_on;leaf' "$dir/folded")"
}
engines=perf
[ "$(id -u)" != 0 ] || engines='perf bpf ptrace'
for engine in $engines; do
  check "$engine by name" "$engine" "${name:0:15}"
  check "$engine by number" "$engine" $target
done
kill -9 $target
finish
