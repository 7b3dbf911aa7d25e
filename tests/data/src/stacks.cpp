// A program with known stacks that are difficult to unwind.
//
// usage: stacks MILLISECONDS CASE[=N]...
//
// Each case is busy for that long below its own function NAME_case().  Meanwhile the thread has the
// case's name (PR_SET_NAME), so one recording can tell all cases apart, even if a stack is broken.
// It is built several times, by different compilers with different flags: data/meson.build.
// It prints nothing.  Time is the thread's own CPU time, so a busy machine changes nothing.
//
//   alloca            a frame of variable size
//   realigned         over-aligned locals: the CFA is saved on the stack
//   signal            in a handler; the signal comes within a function, and at its first byte
//   altstack          in a handler that has its own stack
//   exception         throws through frames with destructors
//   plt               a tiny function of a library, through the PLTs of program and library
//   lazy              in code like a PLT entry, before its push and after it
//   thread=KIB        two threads of pthreads and one of C++, KIB below their roots
//   recursion=DEPTH   default 20
//   memcpy            in a function of libc
//   qsort             in a callback of libc
//   vdso, syscall     in the vdso and in the kernel
//   tail, noreturn    a call that is a jump; a call that is a function's last instruction
//   deep=KIB          below KIB of locals, in frames of 16 KiB
//   unwritten=KIB     the same with locals that were never written: their pages do not exist
// SPDX-License-Identifier: MIT
#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <cctype>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

// Keeps the functions as they are here: none is cloned for constant arguments, none is inlined.
#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noipa))
#endif

extern "C" {

// stacks_plt.cpp
int tiny(int);
void call_tiny_often(int times);

// Hand-written below.  One is interrupted at its first byte, the other ends with its call of
// give_up().
void interrupted_first();
void ends_in_a_call(std::uint64_t us);
// Hand-written below, too: counts `before` down before its push, and `after` afterwards.
void lazy_entry(std::uint64_t before, std::uint64_t after);

volatile int sink;  // the compiler cannot optimize away writes to it

static std::uint64_t cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// Each function does something after its call, so that no call becomes a jump.
KEEP void spin(std::uint64_t us) {
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;)
    for (int i = 0; i < 40000; ++i)
      sink = i;
  sink = 1;
}

// ---- frames of unusual shape

KEEP void alloca_case(std::uint64_t us) {
  const std::size_t size = 100 + us % 1000;
  char* memory = static_cast<char*>(alloca(size));
  std::memset(memory, 1, size);
  spin(us);
  sink = memory[size / 2];
}

// There are more arguments than registers: a realigned frame must find the others on the stack.
KEEP int realigned(std::uint64_t us, int b, int c, int d, int e, int f, int g, int h) {
  alignas(64) volatile char wide[128];
  const std::size_t size = 100 + us % 1000;
  char* memory = static_cast<char*>(alloca(size));
  std::memset(memory, 2, size);
  wide[us % 128] = 3;
  spin(us);
  return wide[us % 128] + memory[size / 2] + b + c + d + e + f + g + h;
}
KEEP void realigned_case(std::uint64_t us) { sink = realigned(us, 1, 2, 3, 4, 5, 6, 7) + 1; }

constexpr int kFrameKib = 16;
constexpr int kPageBytes = 4096;

KEEP void deeper(std::uint64_t us, int kib) {
  volatile char locals[kFrameKib * 1024];
  for (std::size_t i = 0; i < sizeof locals; i += kPageBytes)
    locals[i] = 1;
  if (kib > kFrameKib)
    deeper(us, kib - kFrameKib);
  else
    spin(us);
  sink = locals[0];
}
KEEP void deep_case(std::uint64_t us, int kib) {
  deeper(us, kib);
  sink = 2;
}

// The pages within each frame were never written and so do not exist: no copy of the
// stack reaches beyond them.
KEEP void deeper_unwritten(std::uint64_t us, int kib) {
  volatile char locals[kFrameKib * 1024];
  locals[0] = 1;
  locals[sizeof locals - 1] = 2;
  if (kib > kFrameKib)
    deeper_unwritten(us, kib - kFrameKib);
  else
    spin(us);
  sink = locals[0];
}
KEEP void unwritten_case(std::uint64_t us, int kib) {
  deeper_unwritten(us, kib);
  sink = 11;
}

KEEP void dive(std::uint64_t us, int levels) {
  if (levels > 1)
    dive(us, levels - 1);
  else
    spin(us);
  sink = 3;
}
KEEP void recursion_case(std::uint64_t us, int depth) {
  dive(us, depth);
  sink = 4;
}

// ---- signals

static std::uint64_t handler_us;

KEEP void handle_signal(int, siginfo_t*, void* context) {
  spin(handler_us);
  constexpr int kUd2Bytes = 2;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += kUd2Bytes;
}

KEEP void interrupted_within(int n) {
  volatile int locals[20];
  locals[n] = n;
  __asm__ volatile("ud2");
  sink = locals[n];
}

static void handle_ud2(int flags) {
  struct sigaction action = {};
  action.sa_sigaction = handle_signal;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(SIGILL, &action, nullptr);
}

KEEP void signal_case(std::uint64_t us) {
  handle_ud2(0);
  handler_us = us / 2;
  interrupted_within(7);
  interrupted_first();
  sink = 5;
}

KEEP void altstack_case(std::uint64_t us) {
  static char other_stack[65536];
  stack_t stack{};
  stack.ss_sp = other_stack;
  stack.ss_size = sizeof other_stack;
  sigaltstack(&stack, nullptr);
  handle_ud2(SA_ONSTACK);
  handler_us = us;
  interrupted_within(9);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

// ---- exceptions

struct Guard {
  volatile int value = 0;
  KEEP ~Guard() {
    for (int i = 0; i < 2000; ++i)
      value = value + i;
  }
};

KEEP void throw_below(int levels) {
  Guard guard;
  if (levels == 0)
    throw levels;
  throw_below(levels - 1);
  guard.value = levels;
}

KEEP void exception_case(std::uint64_t us) {
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;) {
    for (int i = 0; i < 20; ++i) {
      try {
        throw_below(4);
      } catch (int) {
        sink = i;
      }
    }
  }
}

// ---- calls into libraries

#ifdef WITH_PLT
KEEP void plt_case(std::uint64_t us) {
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;) {
    for (int i = 0; i < 20000; ++i)
      sink = tiny(i);
    call_tiny_often(20000);
  }
}
#endif

KEEP void lazy_case(std::uint64_t us) {
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;) {
    lazy_entry(1000000, 1000000);
    sink = 11;
  }
}

KEEP void copy_blocks(char* to, const char* from, std::size_t size) {
  for (int i = 0; i < 1000; ++i) {
    std::memcpy(to, from, size - static_cast<std::size_t>(i));
    std::memset(to, i, size - static_cast<std::size_t>(i));
  }
}
KEEP void memcpy_case(std::uint64_t us) {
  static char from[16384];
  static char to[16384];
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;)
    copy_blocks(to, from, sizeof from);
}

KEEP int compare_slowly(const void* a, const void* b) {
  for (int i = 0; i < 3000; ++i)
    sink = i;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
KEEP void qsort_case(std::uint64_t us) {
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;) {
    int numbers[200];
    for (int i = 0; i < 200; ++i)
      numbers[i] = i * 77 % 200;
    std::qsort(numbers, 200, sizeof numbers[0], compare_slowly);
  }
}

KEEP void read_clocks() {
  timespec now{};
  for (int i = 0; i < 10000; ++i)
    clock_gettime(CLOCK_MONOTONIC, &now);
  sink = static_cast<int>(now.tv_nsec);
}
KEEP void vdso_case(std::uint64_t us) {
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;)
    read_clocks();
}

KEEP void read_zeros(int fd) {
  static char buffer[1 << 18];
  for (int i = 0; i < 100; ++i)
    sink = static_cast<int>(read(fd, buffer, sizeof buffer));
}
KEEP void syscall_case(std::uint64_t us) {
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  for (const std::uint64_t until = cpu_us() + us; cpu_us() < until;)
    read_zeros(fd);
  close(fd);
}

// ---- ways to leave a function

KEEP void tail_target(std::uint64_t us) {
  spin(us);
  sink = 6;
}
KEEP void tail_jump(std::uint64_t us) { tail_target(us); }
KEEP void tail_case(std::uint64_t us) {
  tail_jump(us);
  sink = 7;
}

static std::jmp_buf back;

[[noreturn]] KEEP void give_up(std::uint64_t us) {
  spin(us);
  std::longjmp(back, 1);
}
KEEP void noreturn_case(std::uint64_t us) {
  if (setjmp(back) == 0)
    ends_in_a_call(us);
  sink = 8;
}

// ---- threads

struct ThreadWork {
  std::uint64_t us;
  int kib;
};

KEEP void descend(std::uint64_t us, int kib) {
  volatile char locals[1000];
  locals[0] = 1;
  if (kib > 1)
    descend(us, kib - 1);
  else
    spin(us);
  sink = locals[0];
}
KEEP void* pthread_root(void* work) {
  descend(static_cast<ThreadWork*>(work)->us, static_cast<ThreadWork*>(work)->kib);
  sink = 9;
  return nullptr;
}
KEEP void std_thread_root(const ThreadWork* work) {
  descend(work->us, work->kib);
  sink = 10;
}
KEEP void thread_case(std::uint64_t us, int kib) {
  ThreadWork work{us, kib};
  pthread_t first = 0;
  pthread_t second = 0;
  pthread_create(&first, nullptr, pthread_root, &work);
  pthread_create(&second, nullptr, pthread_root, &work);
  std::thread third(std_thread_root, &work);
  pthread_join(first, nullptr);
  pthread_join(second, nullptr);
  third.join();
}

}  // extern "C"

// The code before each of these functions has another CFA at its last byte.  So one byte before
// these addresses is the wrong place to look up a rule or a name.
__asm__(R"(
  .text
  .type before_interrupted, @function
before_interrupted:
  .cfi_startproc
  subq $4072, %rsp
  .cfi_def_cfa_offset 4080
  ud2
  .cfi_endproc
  .size before_interrupted, . - before_interrupted
  .globl interrupted_first
  .type interrupted_first, @function
interrupted_first:
  .cfi_startproc
  ud2
  ret
  .cfi_endproc
  .size interrupted_first, . - interrupted_first
  .globl ends_in_a_call
  .type ends_in_a_call, @function
ends_in_a_call:
  .cfi_startproc
  subq $40, %rsp
  .cfi_def_cfa_offset 48
  call give_up
  .cfi_endproc
  .size ends_in_a_call, . - ends_in_a_call
  .type after_the_call, @function
after_the_call:
  .cfi_startproc
  ret
  .cfi_endproc
  .size after_the_call, . - after_the_call
)");

// A program leaves the lazy entries of a PLT at once.  This one stays in both of its parts.  The
// CFA is the one that linkers write for all entries together: rsp + 8, plus 8 from byte 11 of 16
// on.
__asm__(R"(
  .text
  .p2align 4
  .globl lazy_entry
  .type lazy_entry, @function
lazy_entry:
  .cfi_startproc
  .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
1: decq %rdi
  jnz 1b
  .byte 0x0f, 0x1f, 0x40, 0x00  # nop, 4 bytes
  pushq $0
2: decq %rsi
  jnz 2b
  .cfi_def_cfa %rsp, 16
  popq %rax
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size lazy_entry, . - lazy_entry
)");

namespace {

struct Case {
  const char* name;
  void (*run)(std::uint64_t us);
  void (*run_sized)(std::uint64_t us, int size);
  int default_size;
};

constexpr Case kCases[] = {
    {"alloca", alloca_case, nullptr, 0},
    {"realigned", realigned_case, nullptr, 0},
    {"signal", signal_case, nullptr, 0},
    {"altstack", altstack_case, nullptr, 0},
    {"exception", exception_case, nullptr, 0},
#ifdef WITH_PLT
    {"plt", plt_case, nullptr, 0},
#endif
    {"lazy", lazy_case, nullptr, 0},
    {"thread", nullptr, thread_case, 1},
    {"recursion", nullptr, recursion_case, 20},
    {"memcpy", memcpy_case, nullptr, 0},
    {"qsort", qsort_case, nullptr, 0},
    {"vdso", vdso_case, nullptr, 0},
    {"syscall", syscall_case, nullptr, 0},
    {"tail", tail_case, nullptr, 0},
    {"noreturn", noreturn_case, nullptr, 0},
    {"deep", nullptr, deep_case, 320},
    {"unwritten", nullptr, unwritten_case, 48},
};

}  // namespace

// Runs the case that the command line names `text`; false if there is no such case.
extern "C" KEEP bool run_case(const char* text, std::uint64_t us) {
  const std::size_t length = std::strcspn(text, "=");
  for (const Case& c : kCases) {
    if (std::strlen(c.name) != length || std::strncmp(c.name, text, length) != 0)
      continue;
    prctl(PR_SET_NAME, text);
    if (c.run != nullptr)
      c.run(us);
    else
      c.run_sized(us, text[length] == '=' ? std::atoi(text + length + 1) : c.default_size);
    prctl(PR_SET_NAME, "between");
    return true;
  }
  return false;
}

int main(int argc, char** argv) {
  if (argc < 3 || std::isdigit(static_cast<unsigned char>(argv[1][0])) == 0)
    return 2;
  for (int i = 2; i < argc; ++i)
    if (!run_case(argv[i], static_cast<std::uint64_t>(std::atoi(argv[1])) * 1000))
      return 2;
  return 0;
}
