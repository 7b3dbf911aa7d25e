// A program that counts how often it passes the places where tests set probes.
//
// Usage: probed TIMES [all]: calls counted() TIMES times.  With "all", it does so in a second
// thread and in a child, too, and passes a static probe, writes to /dev/null, and calls by_line()
// and fails().
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

NOINLINE long counted(long bytes, long other);
NOINLINE long counted(long bytes, long other) {
  __asm__ volatile("" : : "r"(other));
  return bytes;
}

NOINLINE long outer(long times);
NOINLINE long outer(long times) {
  long sum = 0;
  for (long i = 0; i < times; ++i)
    sum += counted(i % 2 == 0 ? 100 : -1, i);
  return sum;
}

static inline __attribute__((always_inline)) long inlined(long x) {
  return x * 3;  // line 31
}

NOINLINE long by_line(long x);
NOINLINE long by_line(long x) {
  volatile long y = inlined(x);  // line 36
  return y;
}

// The last step of jumps() is a jump to another function.  The kernel cannot probe the starts of
// the next two, and the last is no function.
#define FUNCTION(NAME, CODE)                                                     \
  ".globl " NAME "\n.type " NAME ", @function\n" NAME ":\n.cfi_startproc\n" CODE \
  ".cfi_endproc\n"                                                               \
  ".size " NAME ", . - " NAME "\n"
long jumps(long x);
__asm__(".text\n" FUNCTION("jumps", "jmp by_line\n")
            FUNCTION("locked", "lock incq (%rsp)\nlock decq (%rsp)\nret\n")
                FUNCTION("may_leave", "test %rdi, %rdi\njne getpid@PLT\nret\n")
                    FUNCTION("to_pointer", "mov (%rdi), %rax\njmp *%rax\n")
                        FUNCTION("pushes_flags", "pushf\npopf\nret\n") "table: .long 1, 2, 3, 4\n");

// An int, of which -1 is an error.
NOINLINE int fails(long x);
NOINLINE int fails(long x) {
  __asm__ volatile("" : : "r"(x));
  return x % 2 == 0 ? 10 : -1;
}

// A static probe with a semaphore, as DTRACE_PROBE2 of sys/sdt.h writes it.
unsigned short probed_semaphore __attribute__((section(".probes"), used));
NOINLINE void pass_static_probe(long size, int number);
NOINLINE void pass_static_probe(long size, int number) {
  if (*(volatile unsigned short*)&probed_semaphore == 0)
    return;
  __asm__ volatile(
      "990: nop\n"
      ".pushsection .note.stapsdt, \"\", \"note\"\n"
      ".balign 4\n"
      ".4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n"
      "992: .balign 4\n"
      "993: .8byte 990b\n"
      ".8byte _.stapsdt.base\n"
      ".8byte probed_semaphore\n"
      ".asciz \"probed\"\n"
      ".asciz \"passed\"\n"
      ".asciz \"8@%0 -4@%1\"\n"
      "994: .balign 4\n"
      ".popsection\n"
      ".ifndef _.stapsdt.base\n"
      ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
      ".weak _.stapsdt.base\n"
      ".hidden _.stapsdt.base\n"
      "_.stapsdt.base: .space 1\n"
      ".size _.stapsdt.base, 1\n"
      ".popsection\n"
      ".endif\n"
      :
      : "r"(size), "r"(number));
}

static void* in_thread(void* times) {
  outer(*(const long*)times);
  return NULL;
}

static void in_child(long times) {
  const pid_t child = fork();
  if (child == 0) {
    outer(times);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static long write_some(long times) {
  const int null = open("/dev/null", O_WRONLY);
  long sum = 0;
  for (long i = 0; i < times; ++i)
    sum += write(null, "some bytes", 1 + (size_t)i % 10);
  (void)!write(-1, "x", 1);  // fails: no bytes
  close(null);
  return sum;
}

int main(int count, char** arguments) {
  long times = count > 1 ? atol(arguments[1]) : 0;
  outer(times);
  if (count > 2 && strcmp(arguments[2], "all") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, &times);
    pthread_join(thread, NULL);
    in_child(times);
    for (long i = 0; i < times; ++i)
      (void)(jumps(i) + fails(i));
    for (long i = 0; i < times; ++i)
      pass_static_probe(1000, -3);
    fprintf(stderr, "written %ld\n", write_some(times));
  }
  return 0;
}
