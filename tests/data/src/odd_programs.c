// Programs that recorders must not harm: each does what is dangerous beside a profiler, checks its
// own results, and ends with status 7.  Without arguments it prints the names of all.
// Usage: odd_programs [NAME SECONDS]
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "odd_programs.h"

enum { kStatus = 7, kBehind = 8 * kPage };
double seconds;
static const char* self;

double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
static void fail(const char* what) {
  fprintf(stderr, "odd_programs: %s: %s\n", what, strerror(errno));
  _exit(1);
}
void expect(int holds, const char* what) {
  if (!holds)
    fail(what);
}
static unsigned long work(unsigned long steps) {
  unsigned long sum = 0;
  for (unsigned long i = 1; i <= steps; ++i) {
    sum += i;
    __asm__ volatile("" : "+r"(sum));
  }
  return sum;
}
void check_work(void) {
  enum { kSteps = 20000 };
  expect(work(kSteps) == (unsigned long)kSteps * (kSteps + 1) / 2, "wrong sum");
}
void work_until(double end) {
  while (now() < end)
    check_work();
}
char* pages(size_t bytes) {
  // Far from others: the kernel puts no other mapping into a hole there, which we would overwrite.
  char* memory =
      mmap((void*)(1L << 40), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(memory != MAP_FAILED, "mmap");
  return memory;
}
pthread_t start(void* (*function)(void*), void* argument, size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (stack_bytes != 0)
    pthread_attr_setstacksize(&attributes, stack_bytes);
  expect(pthread_create(&thread, &attributes, function, argument) == 0, "pthread_create");
  pthread_attr_destroy(&attributes);
  return thread;
}
void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  expect(sigaction(number, &action, NULL) == 0, "sigaction");
}

// A coroutine on `region`, which also calls malloc(3).
static char* region;
ucontext_t back;
static ucontext_t coroutine;
static volatile int is_over;
static void run_coroutine(void) {
  for (const double end = now() + seconds; now() < end;) {
    check_work();
    void* volatile block = malloc(100);
    free(block);
  }
  swapcontext(&coroutine, &back);
}
void prepare(ucontext_t* context, void (*function)(void), char* stack, size_t bytes) {
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = bytes;
  context->uc_link = &back;
  makecontext(context, function, 0);
}
static void* enter_coroutine(void* argument) {
  prepare(&coroutine, run_coroutine, region, kStack);
  swapcontext(&back, &coroutine);
  is_over = 1;
  return argument;
}
static void coroutines(void) {
  region = pages(kStack);
  enter_coroutine(NULL);
}
static void* protect(void* argument) {
  while (!is_over) {
    mprotect(region + kStack, kBehind, PROT_NONE);
    mprotect(region + kStack, kBehind, PROT_READ | PROT_WRITE);
  }
  return argument;
}
static void* unmap(void* argument) {
  while (!is_over) {
    munmap(region + kStack, kBehind);
    mmap(region + kStack, kBehind, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
         -1, 0);
    region[kStack] = 1;
  }
  return argument;
}
static void beside(void* (*function)(void*)) {
  region = pages(kStack + kBehind);
  const pthread_t other = start(function, NULL, 0), first = start(enter_coroutine, NULL, 0);
  pthread_join(first, NULL);
  pthread_join(other, NULL);
}
static void protecting(void) { beside(protect); }
static void unmapping(void) { beside(unmap); }

// The memory beyond a coroutine's stack is missing: only the thread of the coroutine itself could
// supply it.
static void userfaults(void) {
  const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  region = pages(kStack + kBehind);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range = {.range = {(uintptr_t)region + kStack, kBehind},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &range) != 0)
    _exit(kStatus);  // not allowed here
  enter_coroutine(NULL);
  struct uffd_msg message;
  expect(read(fd, &message, sizeof message) < 0, "somebody has read missing memory");
}

static void jit(void) {
  static const unsigned char kCode[] = {0x48, 0x8d, 0x04, 0x37,
                                        0xc3};  // lea (%rdi,%rsi), %rax; ret
  for (const double end = now() + seconds; now() < end; check_work()) {
    unsigned char* code = (unsigned char*)pages(kPage);
    memcpy(code, kCode, sizeof kCode);
    mprotect(code, kPage, PROT_READ | PROT_EXEC);
    long (*add)(long, long);
    memcpy(&add, &code, sizeof add);
    for (int i = 0; i < 1000; ++i)
      expect(add(i, 40) == i + 40, "wrong sum of made code");
    munmap(code, kPage);
  }
}

// A collector's write barrier: the pages are protected again and again.
enum { kHeapPages = 64 };
static char* heap;
static volatile long faults;
static void unprotect(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  char* page = (char*)((uintptr_t)info->si_addr & ~(uintptr_t)(kPage - 1));
  if (page < heap || page >= heap + (size_t)kHeapPages * kPage)
    abort();
  ++faults;
  mprotect(page, kPage, PROT_READ | PROT_WRITE);
}
static void collector(void) {
  heap = pages((size_t)kHeapPages * kPage);
  handle(SIGSEGV, unprotect, 0);
  long rounds = 0;
  for (const double end = now() + seconds; now() < end; ++rounds) {
    mprotect(heap, (size_t)kHeapPages * kPage, PROT_READ);
    for (int i = 0; i < kHeapPages; ++i)
      heap[i * kPage] = (char)rounds;
    check_work();
  }
  expect(faults == rounds * kHeapPages, "faults");
}

static void* protect_own(void* argument) {
  char* memory = pages(16 * kPage);
  for (const double end = now() + seconds; now() < end; check_work())
    for (int i = 0; i < 16; ++i) {
      mprotect(memory + i * kPage, kPage, PROT_NONE);
      mprotect(memory + i * kPage, kPage, PROT_READ | PROT_WRITE);
      memory[i * kPage] = 1;
    }
  return argument;
}
void in_threads(void* (*function)(void*), size_t stack_bytes) {
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i)
    threads[i] = start(function, NULL, stack_bytes);
  for (int i = 0; i < 3; ++i)
    pthread_join(threads[i], NULL);
}
static void protections(void) { in_threads(protect_own, 0); }
static void* advise_own(void* argument) {
  char* memory = pages(1 << 22);
  madvise(memory, 1 << 22, MADV_HUGEPAGE);
  for (const double end = now() + seconds; now() < end; check_work()) {
    memset(memory, 1, 1 << 20);
    madvise(memory, 1 << 22, MADV_DONTNEED);
    expect(memory[5] == 0, "not dropped");
    char* below =
        (char*)(((uintptr_t)__builtin_frame_address(0) - (1 << 16)) & ~(uintptr_t)(kPage - 1));
    madvise(below - 4 * kPage, 4 * kPage, MADV_DONTNEED);  // of this stack, unused
  }
  return argument;
}
static void advice(void) { in_threads(advise_own, 1 << 20); }

volatile long handled;
void count(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  (void)context;
  __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
  check_work();
}
static void wait_for(pid_t child, int status) {
  int got;
  while (waitpid(child, &got, 0) < 0)
    expect(errno == EINTR, "waitpid");
  expect(WIFEXITED(got) && WEXITSTATUS(got) == status, "a child's status");
}
static void forks(void) {
  for (const double end = now() + seconds; now() < end;) {
    const pid_t child = fork();
    if (child == 0) {
      check_work();
      _exit(5);
    }
    wait_for(child, 5);
  }
}
static void vforks(void) {
  for (const double end = now() + seconds; now() < end;) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/false", "false", NULL);
      _exit(9);
    }
    wait_for(child, 1);
  }
}
static void executes(void) {
  check_work();
  char left[32];
  snprintf(left, sizeof left, "%f", seconds - 0.02);
  if (seconds > 0)
    execl(self, self, "executes", left, NULL);
}
static void privileged(void) {
  for (const double end = now() + seconds; now() < end;) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(open("/dev/null", O_WRONLY), 1);
      execl("/bin/su", "su", "--version", NULL);
      _exit(0);  // there is none
    }
    wait_for(child, 0);
  }
}

static pthread_t storm_target;
static void* send_storm(void* argument) {
  while (!is_over)
    pthread_kill(storm_target, SIGUSR1);
  return argument;
}
static void storm_with(void (*handler)(int, siginfo_t*, void*), int flags) {
  handle(SIGUSR1, handler, flags);
  storm_target = pthread_self();
  const pthread_t sender = start(send_storm, NULL, 0);
  work_until(now() + seconds);
  is_over = 1;
  pthread_join(sender, NULL);
  expect(handled > 0, "no signal");
}
static void storm(void) { storm_with(count, 0); }
static void recurse(int number, siginfo_t* info, void* context) {
  static volatile int depth;
  if (depth < 20) {
    ++depth;
    raise(number);
    --depth;
  }
  count(number, info, context);
}
static void nested(void) {
  handle(SIGUSR1, recurse, SA_NODEFER);
  for (const double end = now() + seconds; now() < end;)
    raise(SIGUSR1);
  expect(handled > 0, "no signal");
}
static sigjmp_buf place;
static void jump(int number, siginfo_t* info, void* context) {
  count(number, info, context);
  siglongjmp(place, 1);
}
static void jumps(void) {
  handle(SIGUSR1, jump, 0);
  volatile long jumped = 0;
  for (const double end = now() + seconds; now() < end;)
    if (sigsetjmp(place, 1) == 0)
      raise(SIGUSR1);
    else
      ++jumped;
  expect(jumped == handled, "jumps");
}
static void suspends(void) {
  handle(SIGUSR1, count, 0);
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one, &before);
  long sent = 0;
  for (const double end = now() + seconds; now() < end; ++sent) {
    raise(SIGUSR1);
    while (handled == sent)
      sigsuspend(&before);
  }
  expect(handled == sent, "signals");
}
static void masked(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  work_until(now() + seconds);
}

// Any other call ends the program.
static void filtered(const int* numbers, size_t count_of_numbers) {
  struct sock_filter code[32] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  unsigned short used = 1;
  for (size_t i = 0; i < count_of_numbers; ++i) {
    code[used++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog filter = {used, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT,
         "no filter is one");
  expect(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0, "seccomp");
  work_until(now() + seconds);
}
static void no_return(void) {
  static const int kNumbers[] = {SYS_exit_group, SYS_write, SYS_clock_gettime};
  work_until(now() + seconds / 2);
  filtered(kNumbers, sizeof kNumbers / sizeof *kNumbers);
}
static void run_filtered(void) {
  static const int kNumbers[] = {SYS_rt_sigreturn, SYS_exit_group, SYS_write, SYS_clock_gettime};
  filtered(kNumbers, sizeof kNumbers / sizeof *kNumbers);
  _exit(kStatus);
}
static void filter(void) {
  region = pages(kStack + kBehind);
  prepare(&coroutine, run_filtered, region, kStack);
  swapcontext(&back, &coroutine);
}

static void* load_repeatedly(void* argument) {
  for (const double end = now() + seconds; now() < end;) {
    void* library = dlopen("libz.so.1", RTLD_NOW);
    if (library == NULL)
      break;
    unsigned long (*sum)(unsigned long, const unsigned char*, unsigned);
    void* found = dlsym(library, "crc32");
    memcpy(&sum, &found, sizeof sum);
    expect(sum(0, (const unsigned char*)"a", 1) == 0xe8b7be43UL, "a wrong checksum");
    dlclose(library);
  }
  return argument;
}
static void loads(void) { in_threads(load_repeatedly, 0); }

static const struct {
  const char* name;
  void (*run)(void);
} kAll[] = {{"coroutines", coroutines},
            {"protecting", protecting},
            {"unmapping", unmapping},
            {"userfaults", userfaults},
            {"jit", jit},
            {"collector", collector},
            {"protections", protections},
            {"advice", advice},
            {"other_stack", other_stack},
            {"small_stack", small_stack},
            {"little_stack", little_stack},
            {"little_of_large", little_of_large},
            {"small_coroutine", small_coroutine},
            {"preempts", preempts},
            {"tiny_threads", tiny_threads},
            {"forks", forks},
            {"vforks", vforks},
            {"executes", executes},
            {"privileged", privileged},
            {"storm", storm},
            {"nested", nested},
            {"jumps", jumps},
            {"suspends", suspends},
            {"masked", masked},
            {"no_return", no_return},
            {"filter", filter},
            {"loads", loads}};

int main(int argc, char** argv) {
  self = argv[0];
  seconds = argc > 2 ? atof(argv[2]) : 0;
  for (size_t i = 0; i < sizeof kAll / sizeof *kAll; ++i)
    if (argc < 3)
      puts(kAll[i].name);
    else if (strcmp(argv[1], kAll[i].name) == 0) {
      kAll[i].run();
      return kStatus;
    }
  return argc < 3 ? 0 : 2;
}
