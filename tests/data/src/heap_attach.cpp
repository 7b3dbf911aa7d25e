// A program that allocates when it is told to, by letters on standard input; it answers each with a
// line.  It has threads, and blocks from before, so that a tracer can attach to it in any state.
//
// Usage: heap_attach PLUGIN [THREADS [epoll]]
// With "epoll" it waits for the letters by epoll_wait(2).
// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define KEEP __attribute__((noinline))

namespace {

constexpr int kBlocks = 1000, kOld = 100;
std::atomic<void*> sink;
void* old_blocks[kOld];
pthread_barrier_t begin_work, end_work;

KEEP void kept_by_thread() {
  for (int i = 0; i < kBlocks; ++i)
    sink = std::malloc(100);
}
KEEP void freed_by_thread() {
  for (int i = 0; i < kBlocks; ++i) {
    void* block = std::malloc(60);
    __asm__ volatile("" : "+r"(block));
    std::free(block);
  }
}
KEEP void kept_by_new() {
  for (int i = 0; i < 5; ++i)
    sink = new char[333];
}
KEEP void other_forms() {
  for (int i = 0; i < 3; ++i)
    sink = std::calloc(10, 30);
  for (int i = 0; i < 2; ++i)
    sink = std::aligned_alloc(64, 640);
  void* block = nullptr;
  if (posix_memalign(&block, 128, 1280) == 0)
    sink = block;
}
KEEP void by_the_c_library() {
  for (int i = 0; i < 7; ++i)
    sink = ::strdup("seven!");
}
KEEP void grow_old() {
  for (int i = 30; i < 40; ++i)
    old_blocks[i] = std::realloc(old_blocks[i], 7000);
}
KEEP void free_old() {
  for (int i = 0; i < 30; ++i)
    std::free(old_blocks[i]);
}

void* work(void* /*unused*/) {
  for (;;) {
    pthread_barrier_wait(&begin_work);
    kept_by_thread();
    freed_by_thread();
    pthread_barrier_wait(&end_work);
  }
}

KEEP void in_a_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < kBlocks; ++i)
      sink = std::malloc(50);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("child %d\n", status);
}

/// From now on, memfd_create(2) ends the process.
KEEP void forbid_memory_files() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    ::abort();
}

void* (*plugin)(std::size_t) = nullptr;

/// The plugin is loaded once the tracer is there.
KEEP void load(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW);
  plugin = reinterpret_cast<void* (*)(std::size_t)>(::dlsym(library, "first"));
  if (plugin == nullptr)
    ::abort();
}

}  // namespace

/// In a program at a fixed address, this makes a stub of malloc that libraries see, too.
void* volatile address_of_malloc = reinterpret_cast<void*>(std::malloc);

int interruptions = 0;

/// Waits for input, and counts how often that ended without any.
void await_input() {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event input{EPOLLIN, {}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, STDIN_FILENO, &input);
  for (; ::epoll_wait(set, &input, 1, -1) != 1; ++interruptions) {
  }
  ::close(set);
}

/// Waits for a byte in a signal handler.
void handle(int /*unused*/) {
  char byte = 0;
  if (::read(0, &byte, 1) != 1)
    ::abort();
}

int main(int count, char** arguments) {
  const int threads = count > 2 ? std::atoi(arguments[2]) : 4;
  for (void*& block : old_blocks)
    block = std::malloc(5000);
  const auto all = static_cast<unsigned>(threads) + 1;
  pthread_barrier_init(&begin_work, nullptr, all);
  pthread_barrier_init(&end_work, nullptr, all);
  pthread_t thread{};
  for (int i = 0; i < threads; ++i)
    pthread_create(&thread, nullptr, work, nullptr);
  char letter = 0;
  for (std::puts("ready"), std::fflush(stdout);;) {
    if (count > 3)
      await_input();
    if (::read(STDIN_FILENO, &letter, 1) != 1)
      break;
    if (letter == 't') {
      pthread_barrier_wait(&begin_work);
      pthread_barrier_wait(&end_work);
    } else if (letter == 'n') {
      kept_by_new();
    } else if (letter == 'o') {
      other_forms();
    } else if (letter == 'c') {
      by_the_c_library();
    } else if (letter == 'g') {
      grow_old();
    } else if (letter == 'f') {
      free_old();
    } else if (letter == 'k') {
      in_a_child();
    } else if (letter == 'm') {
      constexpr std::size_t kBytes = 64 << 20;
      std::memset(
          ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1,
          kBytes);
    } else if (letter == 'h') {
      ::signal(SIGUSR1, handle);
      ::raise(SIGUSR1);
    } else if (letter == 'i') {
      std::printf("interrupted %d\n", interruptions);
    } else if (letter == 's') {
      forbid_memory_files();
    } else if (letter == 'p') {
      load(arguments[1]);
    } else if (letter == 'l') {
      sink = plugin(777);
    } else if (letter == 'e') {
      ::execl("/bin/sleep", "sleep", "30", nullptr);
    }
    std::printf("did %c\n", letter);
    std::fflush(stdout);
  }
}
