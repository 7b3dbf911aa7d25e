/* Programs that are difficult to trace: each mode is one.  They report what they do: heap_told.h.
 *
 *     heap_edges MODE
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "heap_told.h"

static pthread_key_t key;

/* The destructor of a key: it runs as late as it can, and allocates. */
static void on_destruction(void* rounds) {
  if (rounds != (void*)PTHREAD_DESTRUCTOR_ITERATIONS)
    pthread_setspecific(key, (char*)rounds + 1);
  drop(get(70), 70);
}

static void* free_late(void* nothing) {
  pthread_setspecific(key, (void*)1);
  /* glibc keeps the text of an unknown signal for the thread, and frees it last of all. */
  if (strsignal(1000) == NULL)
    abort();
  drop(get(30), 30);
  return nothing;
}

/* The threads run one after the other, so each reuses the place of the one before. */
static void run_late_frees(void) {
  pthread_key_create(&key, on_destruction);
  for (unsigned i = 0; i < 3000; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_late, NULL) != 0)
      abort();
    pthread_join(thread, NULL);
  }
}

static ucontext_t back, there;

static void allocate_and_return(void) {
  drop(get(64), 64);
  swapcontext(&there, &back);
}

static void make_context(char* stack, size_t size) {
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = size;
  there.uc_link = &back;
  makecontext(&there, allocate_and_return, 0);
  swapcontext(&back, &there);
}

/* Two stacks that are far apart in one mapping.  The program unmaps the upper one and uses the
 * lower one again: the library must not read the upper one. */
static void run_merged_stacks(void) {
  const size_t size = 3 << 20;
  char* stacks = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  make_context(stacks, size);
  make_context(stacks + size, size);
  munmap(stacks + size, size);
  make_context(stacks, size / 2);
  munmap(stacks, size);
}

/* A child makes a file its standard error.  Tracing cannot continue in the child, because its files
 * may not grow.  The library must not write to standard error. */
static void run_daemon(void) {
  const pid_t child = fork();
  if (child == 0) {
    const struct rlimit none = {0, 0};
    const int file = memfd_create("file", 0);
    if (file < 0 || dup2(file, 2) != 2 || setrlimit(RLIMIT_FSIZE, &none) != 0)
      _exit(1);
    drop(get(10), 10);
    _exit(lseek(2, 0, SEEK_END) == 0 ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0)
    abort();
}

static sem_t is_inside, may_leave;

static int wait_inside(struct dl_phdr_info* info, size_t size, void* nothing) {
  (void)info;
  (void)size;
  (void)nothing;
  sem_post(&is_inside);
  sem_wait(&may_leave);
  return 1;
}

static void* iterate(void* nothing) {
  dl_iterate_phdr(wait_inside, NULL);
  return nothing;
}

/* Forks a child without the thread that holds a lock of the dynamic linker. */
static void run_fork_of_locked(void) {
  pthread_t thread;
  sem_init(&is_inside, 0, 0);
  sem_init(&may_leave, 0, 0);
  if (pthread_create(&thread, NULL, iterate, NULL) != 0)
    abort();
  sem_wait(&is_inside);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    drop(get(10), 10);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  sem_post(&may_leave);
  pthread_join(thread, NULL);
  if (status != 0)
    abort();
}

/* The program's own limit of its address space does not count what the library maps. */
static void run_limit(void) {
  const size_t megabyte = 1 << 20;
  const struct rlimit limit = {1024 * megabyte, 1024 * megabyte};
  if (setrlimit(RLIMIT_AS, &limit) != 0)
    abort();
  for (int i = 0; i < 8; ++i)
    (void)get(64 * megabyte);
  void* too_much = malloc(8192 * megabyte);
  __asm__ volatile("" : "+r"(too_much));
  if (too_much != NULL)
    abort();
  failed += 1;
}

static void run_locked(void) {
  char text[4096] = "";
  (void)get(1 << 20);
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0 && geteuid() == 0)
    abort();
  (void)get(1 << 20);
  const int status = open("/proc/self/status", O_RDONLY);
  if (read(status, text, sizeof text - 1) <= 0)
    abort();
  close(status);
  const char* locked = strstr(text, "VmLck:");
  const long kilobytes = locked == NULL ? 0 : strtol(locked + 6, NULL, 10);
  if (geteuid() == 0 && (kilobytes < 2048 || kilobytes > 1 << 20))
    abort();
}

/* Checks how much of the address space is in use: after a failure the library keeps nothing. */
static void run_addresses(void) {
  unsigned long pages = 0;
  char text[100] = "";
  const int statm = open("/proc/self/statm", O_RDONLY);
  if (read(statm, text, sizeof text - 1) > 0)
    pages = strtoul(text, NULL, 10);
  close(statm);
  if (pages == 0 || pages > (1UL << 30) / 4096)
    abort();
}

/* A process that is not traced must make no system call of the library's. */
static void run_no_getpid(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    abort();
  for (int i = 0; i < 10; ++i)
    drop(get(10), 10);
}

/* Allocates before any library is initialised, also before malloctrace's. */
static void allocate_early(int argc, char** argv, char** environment) {
  (void)argc;
  (void)argv;
  for (; *environment != NULL; ++environment)
    if (strcmp(*environment, "HEAP_EARLY=1") == 0) {
      void* block = malloc(5);
      __asm__ volatile("" : "+r"(block));
      free(block);
    }
}
__attribute__((section(".preinit_array"),
               used)) static void (*const first)(int, char**, char**) = allocate_early;

/* operator new and delete: only preloaded libraries define them. */
extern void* _Znwm(size_t) __attribute__((weak));
extern void _ZdlPv(void*) __attribute__((weak));

static void run_new(void) {
  if (&_Znwm == NULL || &_ZdlPv == NULL)
    abort();
  for (int i = 0; i < 5; ++i)
    came(_Znwm(100), 100);
  void* block = _Znwm(20);
  came(block, 20);
  went(block, 20);
  _ZdlPv(block);
  drop(get(30), 30);
}

/* Measures how much of the address space a search for leaks would read. */
static void run_readable(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[5000];
  unsigned long readable = 0;
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    unsigned long start;
    unsigned long end;
    char access;
    if (sscanf(line, "%lx-%lx %c", &start, &end, &access) == 3 && access == 'r')
      readable += end - start;
  }
  if (maps == NULL || readable > 1UL << 30)
    _exit(4);
  fclose(maps);
}

/* Calls a function from an aligned frame, whose CFA depends on a register that is neither the stack
 * pointer nor rbp.  Lazy binding has such frames, and assembly code.
 */
#define CALL_BY(REGISTER)                                                                          \
  void call_by_##REGISTER(void (*function)(void));                                                 \
  __asm__(".text\n.type call_by_" #REGISTER ", @function\ncall_by_" #REGISTER                      \
          ":\n.cfi_startproc\npush %" #REGISTER "\n.cfi_def_cfa_offset 16\n.cfi_offset " #REGISTER \
          ", -16\nmov %rsp, %" #REGISTER "\n.cfi_def_cfa_register " #REGISTER                      \
          "\nand $-256, %rsp\nsub $256, %rsp\ncall *%rdi\nmov %" #REGISTER                         \
          ", %rsp\n.cfi_def_cfa_register rsp\npop %" #REGISTER "\n.cfi_restore " #REGISTER         \
          "\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size call_by_" #REGISTER                   \
          ", . - call_by_" #REGISTER "\n")
CALL_BY(rbx);
CALL_BY(r12);
CALL_BY(r15);

static KEEP void allocate_there(void) {
  __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
  drop(get(10), 10);
}
static KEEP void go_on_by_r12(void) {
  __asm__ volatile("" ::: "rbx", "r12", "r15");
  call_by_r12(allocate_there);
  __asm__ volatile("");
}
static KEEP void go_on_by_rbx(void) {
  __asm__ volatile("" ::: "rbx", "r12", "r15");
  call_by_rbx(go_on_by_r12);
  __asm__ volatile("");
}
static void run_aligned(void) {
  for (int i = 0; i < 50; ++i)
    call_by_r15(go_on_by_rbx);
}

/* pthread_getattr_np() allocates while it holds the thread's lock. */
static void* ask_first(void* nothing) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0)
    abort();
  pthread_attr_destroy(&attributes);
  drop(get(20), 20);
  return nothing;
}
static void run_attributes(void) {
  for (unsigned i = 0; i < 10; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask_first, NULL) != 0)
      abort();
    pthread_join(thread, NULL);
  }
}

/* Of heap_nested.c: its malloc jumps there instead of allocating HEAP_JUMPS bytes. */
#define HEAP_JUMPS 54321
__attribute__((weak)) void heap_jump_to(jmp_buf* there);

static void* drop_all(void* blocks) {
  for (void** block = blocks; *block != NULL; ++block)
    drop(*block, 300);
  return NULL;
}

static KEEP void allocate_deeper(unsigned depth) {
  if (depth == 0)
    drop(get(40), 40);
  else
    allocate_deeper(depth - 1);
  __asm__ volatile("");
}

static void on_signal(int number) {
  (void)number;
  drop(get(200), 200);
}

/* All functions of an allocator, which may call each other. */
static void run_nested(void) {
  void* blocks[21] = {NULL};
  for (unsigned i = 0; i < 100; ++i) {
    drop(get(5000), 5000);
    void* block = calloc(1, 700);
    came(block, 700);
    went(block, 700);
    void* larger = realloc(block, 3000);
    came(larger, 3000);
    drop(larger, 3000);
    if (posix_memalign(&block, 64, 128) != 0)
      abort();
    came(block, 128);
    drop(block, 128);
  }
  for (unsigned i = 0; i < 20; ++i)
    blocks[i] = get(300);
  pthread_t thread; /* its description is the C library's block */
  if (pthread_create(&thread, NULL, drop_all, blocks) != 0)
    abort();
  pthread_join(thread, NULL);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  /* A call that never returns; later ones count. */
  jmp_buf there;
  heap_jump_to(&there);
  if (setjmp(there) == 0)
    get(HEAP_JUMPS);
  heap_jump_to(NULL);
  allocate_deeper(30);
  drop(get(50), 50);
}

static void run_nothing(void) { drop(get(10), 10); }

static const struct mode modes[] = {{"merged_stacks", run_merged_stacks},
                                    {"late_frees", run_late_frees},
                                    {"fork_of_locked", run_fork_of_locked},
                                    {"daemon", run_daemon},
                                    {"limit", run_limit},
                                    {"locked", run_locked},
                                    {"addresses", run_addresses},
                                    {"no_getpid", run_no_getpid},
                                    {"new", run_new},
                                    {"readable", run_readable},
                                    {"aligned", run_aligned},
                                    {"attributes", run_attributes},
                                    {"nested", run_nested},
                                    {"nothing", run_nothing}};

int main(int argc, char** argv) {
  return run_mode(argc, argv, modes, sizeof modes / sizeof *modes);
}
