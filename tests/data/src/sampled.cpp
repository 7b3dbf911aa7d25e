// A program that is difficult to sample from inside.  It detects when sampling disturbs it.
//
//     sampled MODE [ARGUMENT...]
//
//   eight          threads t1 to t8, in spin_1() to spin_8(), n * 40 ms of CPU time each
//   own-handler    uses SIGPROF itself: sigaction, setitimer(ITIMER_PROF), timer_create, raise
//   own-itimer     uses setitimer(ITIMER_PROF) only
//   default        raises SIGPROF without a handler: the signal must end the program
//   masked         one thread blocks all signals, another waits for all signals with sigwait
//   storm          malloc in threads, vfork and exec, dlopen, longjmp out of deep stacks and out of
//                  handlers, all at once
//   tree           forks children that spin: one returns, one calls _exit, one kills itself, one
//                  executes another program
//   closed         closes all of its descriptors, then spins
//   stacks         spins on an alternate stack, and on two stacks that it maps itself, one of them
//                  at the end of a mapping
//   hidden         a thread that the C library starts by itself
//   bare           a thread without thread-local storage of its own
//   seccomp        allows itself few system calls (others kill the process), then spins
//   errno          compares errno before and after a long time
//   exec PROGRAM   spins for half a second, then executes PROGRAM
//
// It reports each error, and then ends with status 1.  Times are CPU time.
// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace {

volatile std::uint64_t sink;
std::atomic<int> wrong;

void complain(const char* what) {
  std::fprintf(stderr, "sampled: %s\n", what);
  ++wrong;
}
void expect(bool holds, const char* what) {
  if (!holds)
    complain(what);
}

std::uint64_t cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// Reads the clock once in about 100 microseconds.
#define SPIN_FOR(microseconds)                                                   \
  for (const std::uint64_t until = cpu_us() + (microseconds); cpu_us() < until;) \
    for (int i = 0; i < 40000; ++i)                                              \
  sink = sink + 1

}  // namespace

#define SPINNER(name)                    \
  NOINLINE void name(std::uint64_t us) { \
    SPIN_FOR(us);                        \
    sink = 1;                            \
  }
SPINNER(spin_1)
SPINNER(spin_2)
SPINNER(spin_3)
SPINNER(spin_4)
SPINNER(spin_5)
SPINNER(spin_6)
SPINNER(spin_7)
SPINNER(spin_8)
SPINNER(spin_returned)
SPINNER(spin_exited)
SPINNER(spin_killed)
SPINNER(spin_before_exec)
SPINNER(spin_closed)
SPINNER(spin_masked)
SPINNER(spin_alternate)
SPINNER(spin_coroutine)
SPINNER(spin_edge)
SPINNER(spin_hidden)
SPINNER(spin_bare)
SPINNER(spin_main)

namespace {

constexpr std::uint64_t kHalfSecondUs = 500000;

void eight() {
  void (*const spinners[])(std::uint64_t) = {spin_1, spin_2, spin_3, spin_4,
                                             spin_5, spin_6, spin_7, spin_8};
  std::vector<std::thread> threads;
  std::latch all{8};  // the threads end together, because a reader needs time to read their names
  for (unsigned n = 1; n <= 8; ++n)
    threads.emplace_back([n, &spinners, &all] {
      pthread_setname_np(pthread_self(), ("t" + std::to_string(n)).c_str());
      spinners[n - 1](n * 40000);
      all.arrive_and_wait();
    });
  for (std::thread& thread : threads)
    thread.join();
}

volatile sig_atomic_t own_plain, own_timer, own_raised, own_other;

void count_plain(int) { own_plain = own_plain + 1; }
void count_info(int, siginfo_t* info, void*) {
  if (info->si_code == SI_TIMER && info->si_value.sival_int == 4711)
    own_timer = own_timer + 1;
  else if (info->si_code == SI_KERNEL)
    own_plain = own_plain + 1;
  else if (info->si_code == SI_TKILL)
    own_raised = own_raised + 1;
  else
    own_other = own_other + 1;
}

void own_handler() {
  struct sigaction old = {};
  struct sigaction action = {};
  expect(sigaction(SIGPROF, nullptr, &old) == 0 && old.sa_handler == SIG_DFL,
         "SIGPROF was not at its default");
  expect(signal(SIGPROF, count_plain) == SIG_DFL, "signal() told of another handler");
  raise(SIGPROF);
  expect(own_plain == 1, "a handler by signal() was not called");
  action.sa_sigaction = count_info;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaddset(&action.sa_mask, SIGUSR1);
  expect(sigaction(SIGPROF, &action, &old) == 0 && old.sa_handler == count_plain,
         "sigaction() told of another handler");
  expect(sigaction(SIGPROF, nullptr, &old) == 0 && old.sa_sigaction == count_info &&
             (old.sa_flags & SA_SIGINFO) != 0 && sigismember(&old.sa_mask, SIGUSR1) == 1,
         "the handler that was set is not told");
  own_plain = 0;
  raise(SIGPROF);
  expect(own_raised == 1, "raise() did not reach the handler");
  const itimerval each{{0, 20000}, {0, 20000}};
  setitimer(ITIMER_PROF, &each, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  event.sigev_value.sival_int = 4711;
  timer_t timer{};
  expect(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0, "no timer");
  const itimerspec when{{0, 50000000}, {0, 50000000}};
  timer_settime(timer, 0, &when, nullptr);
  spin_1(kHalfSecondUs);
  timer_delete(timer);
  const itimerval never{};
  setitimer(ITIMER_PROF, &never, nullptr);
  // 25 and 10 expirations, minus those that came while the signal was pending.
  expect(own_plain >= 10, "ITIMER_PROF did not reach the handler");
  expect(own_plain <= 60, "more came than ITIMER_PROF has sent");
  expect(own_timer >= 4 && own_timer <= 11, "a timer of the program's did not reach the handler");
  expect(own_other == 0 && own_raised == 1, "strange signals reached the handler");
  // The program's action for the signal still holds after SIG_IGN and SA_RESETHAND.
  signal(SIGPROF, SIG_IGN);
  raise(SIGPROF);
  action.sa_handler = count_plain;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  own_plain = 0;
  sigaction(SIGPROF, &action, &old);
  expect(old.sa_handler == SIG_IGN, "SIG_IGN was not kept");
  raise(SIGPROF);
  sigaction(SIGPROF, nullptr, &old);
  expect(own_plain == 1 && old.sa_handler == SIG_DFL, "SA_RESETHAND was not heeded");
}

void own_itimer() {
  signal(SIGPROF, count_plain);
  const itimerval each{{0, 20000}, {0, 20000}};
  setitimer(ITIMER_PROF, &each, nullptr);
  // The kernel checks this timer at its ticks.  A program that shares its CPU with many others gets
  // few of them.
  constexpr int kMostRounds = 20, kEnough = 10, kMostInRound = 60;
  int rounds = 0;
  for (; own_plain < kEnough && rounds < kMostRounds; ++rounds)
    spin_1(kHalfSecondUs);
  expect(own_plain >= kEnough && own_plain <= kMostInRound * rounds,
         "ITIMER_PROF did not reach the handler");
}

void masked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::thread waiting([&all] {
    int signal = 0;
    expect(sigwait(&all, &signal) == 0 && signal == SIGUSR1, "sigwait() was woken by another");
  });
  std::thread worker([] { spin_masked(kHalfSecondUs); });
  worker.join();
  pthread_kill(waiting.native_handle(), SIGUSR1);
  waiting.join();
}

thread_local sigjmp_buf far_away;

NOINLINE void dive(int levels) {
  volatile char room[200];
  room[0] = static_cast<char>(levels);
  if (levels == 0)
    siglongjmp(far_away, 1);
  dive(levels - 1);
  sink = sink + static_cast<unsigned char>(room[0]);
}

void jump_out(int) { siglongjmp(far_away, 1); }

void storm() {
  const std::uint64_t until = cpu_us() + kHalfSecondUs;
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&is_over] {
      std::vector<std::string> blocks(64);
      for (unsigned n = 0; !is_over; ++n)
        blocks[n % 64] = std::string(n % 5000, 'x');
    });
  threads.emplace_back([&is_over] {
    while (!is_over)
      if (void* library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL))
        dlclose(library);
  });
  threads.emplace_back([&is_over] {
    while (!is_over)
      if (sigsetjmp(far_away, 1) == 0)
        dive(300);
  });
  threads.emplace_back([&is_over] {
    while (!is_over)
      std::thread([] { sink = sink + 1; }).join();
  });
  signal(SIGVTALRM, jump_out);  // for this thread only: the others block the signal
  static int children = 0;      // static, so that a jump does not change it
  while (cpu_us() < until && children < 300) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    expect(status == 0, "a child of vfork() has failed");
    ++children;
    if (sigsetjmp(far_away, 1) == 0)
      raise(SIGVTALRM);
  }
  is_over = true;
  for (std::thread& thread : threads)
    thread.join();
}

void tree() {
  const auto start = [](void (*work)()) {
    if (fork() == 0) {
      work();
      std::exit(0);
    }
  };
  start([] { spin_returned(kHalfSecondUs); });
  start([] {
    spin_exited(kHalfSecondUs);
    _exit(0);
  });
  std::thread([&start] {
    start([] {
      spin_killed(kHalfSecondUs);
      kill(getpid(), SIGKILL);
    });
  }).join();
  start([] {
    std::thread([] { spin_before_exec(kHalfSecondUs); }).join();
    execl("/proc/self/exe", "sampled", "closed", nullptr);
  });
  while (wait(nullptr) > 0) {
  }
}

void closed() {
  constexpr int kMany = 1024;
  for (int fd = 0; fd < kMany; ++fd)
    close(fd);
  spin_closed(kHalfSecondUs);
}

ucontext_t main_context, coroutine_context;

void run_coroutine() { spin_coroutine(kHalfSecondUs); }
void run_edge() { spin_edge(kHalfSecondUs); }

void handle_on_stack(int) { spin_alternate(kHalfSecondUs); }

/// Runs `work` on a stack of 64 KiB; the page after it is not readable if `is_at_edge`.
void on_own_stack(void (*work)(), bool is_at_edge) {
  constexpr std::size_t kBytes = 65536, kPage = 4096;
  auto* memory = static_cast<char*>(
      mmap(nullptr, kBytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (is_at_edge)
    mprotect(memory + kBytes, kPage, PROT_NONE);
  getcontext(&coroutine_context);
  coroutine_context.uc_stack.ss_sp = memory;
  coroutine_context.uc_stack.ss_size = kBytes;
  coroutine_context.uc_link = &main_context;
  makecontext(&coroutine_context, work, 0);
  swapcontext(&main_context, &coroutine_context);
}

void stacks() {
  std::vector<char> room(65536);
  stack_t alternate{};
  alternate.ss_sp = room.data();
  alternate.ss_size = room.size();
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = handle_on_stack;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  alternate.ss_flags = SS_DISABLE;
  sigaltstack(&alternate, nullptr);
  on_own_stack(run_coroutine, false);
  on_own_stack(run_edge, true);
}

std::atomic<bool> hidden_is_over;
void* run_hidden(void*) {
  spin_hidden(2 * kHalfSecondUs);
  hidden_is_over = true;
  return nullptr;
}

/// Like a call within the C library: no library can interpose it.
void hidden() {
  void* library = dlopen("libc.so.6", RTLD_NOW);
  const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(library, "pthread_create"));
  pthread_t thread{};
  expect(create(&thread, nullptr, run_hidden, nullptr) == 0, "no thread");
  while (!hidden_is_over)
    spin_main(10000);
  pthread_join(thread, nullptr);
}

std::atomic<bool> bare_is_over;
/// Like a thread of pthread_create(3), but without CLONE_SETTLS: it shares its creator's
/// thread-local storage.
int run_bare(void*) {
  spin_bare(4 * kHalfSecondUs);
  bare_is_over = true;
  ::syscall(SYS_exit, 0);
  return 0;
}

void bare() {
  std::vector<std::uint64_t> stack(8192);
  constexpr int kFlags =
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  expect(clone(run_bare, stack.data() + stack.size(), kFlags, nullptr) > 0, "no thread");
  while (!bare_is_over)
    spin_main(10000);
}

/// Allows only the system calls that signal handlers need, and those that end the program.
void seccomp() {
  spin_main(kHalfSecondUs / 2);
  constexpr unsigned kAllowed[] = {SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_exit_group, SYS_write,
                                   SYS_clock_gettime};
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned number : kAllowed) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  expect(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "no filter");
  spin_masked(kHalfSecondUs);
}

void check_errno() {
  errno = 4321;
  for (const std::uint64_t until = cpu_us() + kHalfSecondUs; cpu_us() < until;)
    if (errno != 4321)
      break;
  expect(errno == 4321, "errno has changed");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const struct {
    std::string_view name;
    void (*run)();
  } modes[] = {{"eight", eight},
               {"own-handler", own_handler},
               {"own-itimer", own_itimer},
               {"default", [] { raise(SIGPROF); }},
               {"masked", masked},
               {"storm", storm},
               {"tree", tree},
               {"closed", closed},
               {"stacks", stacks},
               {"hidden", hidden},
               {"bare", bare},
               {"seccomp", seccomp},
               {"errno", check_errno}};
  for (const auto& candidate : modes)
    if (candidate.name == mode) {
      candidate.run();
      return wrong == 0 ? 0 : 1;
    }
  if (mode == "exec" && argc > 2) {
    spin_before_exec(kHalfSecondUs);
    execvp(argv[2], argv + 2);
  }
  std::fprintf(stderr, "usage: sampled MODE\n");
  return 2;
}
