#!/bin/bash
# Many sleeping threads have deep stacks in the same memory: 200 times 8 MiB, of which the program has one.  The recorder,
# which keeps the last stack of a sleeping thread, does not keep them all.
. "$(dirname "$0")/../lib.sh"
can_record --engine ptrace 2>"$dir/err" || skip "the engine ptrace cannot record here: $(cat "$dir/err")"
[ "$(uname -m)" = x86_64 ] || skip 'not x86-64'
cc -O1 -pthread -o "$dir/shared" -x c - <<'END_C' || fail 'not built'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static char* memory;
/* Sleeps with a chain of frame pointers through all of the memory. */
static void* run(void* unused) {
  const struct timespec time = {0, 200000000};
  for (;;) {
    long result = SYS_nanosleep;
    __asm__ volatile(
        "mov %%rsp, %%r12; mov %%rbp, %%r13; mov %1, %%rsp; mov %2, %%rbp; syscall; mov %%r12, %%rsp; mov %%r13, %%rbp"
        : "+a"(result)
        : "r"(memory), "r"(memory + 4096), "D"(&time), "S"(0L)
        : "r12", "r13", "rcx", "r11", "memory");
  }
  return unused;
}
int main(void) {
  const size_t bytes = 8 << 20, frame = 60000;
  memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (size_t at = 4096; at + frame + 8 < bytes; at += frame)
    *(uint64_t*)(memory + at) = (uint64_t)(memory + at + frame);
  pthread_attr_t attr;
  pthread_t thread;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 65536);
  for (int i = 0; i < 200; ++i)
    pthread_create(&thread, &attr, run, 0);
  pause();
}
END_C
python3 "$(dirname "$0")/cost.py" "$dir/cost" pe-record --engine ptrace --clock wall -F 49 -d 4 -o "$dir/x.pe" -- "$dir/shared" 2>"$dir/err"
grep -q 'status=0$' "$dir/cost" || fail "$(cat "$dir/cost" "$dir/err")"
peak=$(sed -nE 's/.*peak_kib=([0-9]+) .*/\1/p' "$dir/cost")
# 256 MiB are kept of targets.  Up to as many wait in the ring of the engine, and as many in the stream's order, if the
# recorder has no CPU.
at_least 'peak MiB of the recorder, at most' $((peak >> 10)) 832
finish
