// Programs that try to aim a recorder's probes at other programs.
//
// With BYSTANDER defined, victim() starts two bytes earlier, at the same place of the file but for
// that: a probe on the start of the other one would be inside of its first instruction.
//
//     bystander LIBRARY      calls victim() of itself and of the library all the time, and prints a
//                            line when a result is wrong or the code has changed
//     swaps LIBRARY OTHER    maps the library; when somebody opens it, renames OTHER to its path
//     executes PROGRAM       when somebody opens its file, becomes the program
//     writes LIBRARY         maps the library; when somebody opens it, writes to it all the time
//     waits for              does nothing
//
// Those that map the library also call its victim() all the time.  With LIBRARY defined, this is
// the library, which only has victim().
// SPDX-License-Identifier: MIT
#ifdef BYSTANDER
#define BEFORE ""
#else
#define BEFORE "nop\nnop\n"
#endif
__asm__(".text\n.balign 64\n" BEFORE
        ".globl victim\n.type victim, @function\nvictim:\n.cfi_startproc\n"
        "lea 1(%rdi, %rdi, 2), %eax\nret\n.cfi_endproc\n.size victim, . - victim\n.balign 64\n");

#ifndef LIBRARY
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

int victim(int x);
typedef int (*Function)(int);

static void watch(const char* name, Function function, unsigned char* known) {
  if (function(5) != 16)
    printf("%s: wrong result\n", name);
  if (memcmp(known, (const void*)function, 4) != 0)
    printf("%s: changed code\n", name);
  memcpy(known, (const void*)function, 4);
  fflush(stdout);
}

static void stand_by(const char* library) {
  const Function of_library = (Function)dlsym(dlopen(library, RTLD_NOW), "victim");
  const Function own = victim;
  unsigned char known[2][4];
  memcpy(known[0], (const void*)own, 4);
  memcpy(known[1], (const void*)of_library, 4);
  for (;;) {
    watch("program", own, known[0]);
    watch("library", of_library, known[1]);
    usleep(500);
  }
}

static void await_open(const char* path) {
  char event[4096];
  const int notify = inotify_init();
  inotify_add_watch(notify, path, IN_OPEN);
  printf("ready\n");
  fflush(stdout);
  if (read(notify, event, sizeof event) < 0)
    perror("inotify");
}

// Writes other padding, which does not change what the library does.
static void write_to(const char* path) {
  const int file = open(path, O_RDWR);
  char last[2] = {0, 0};
  if (pread(file, last, 1, 0x1000 + 63) < 0)
    perror("pread");
  for (;;) {
    if (pwrite(file, last, 1, 0x1000 + 63) < 0)
      perror("pwrite");
    usleep(100);
  }
}

int main(int count, char** arguments) {
  alarm(60);
  const char* const mode = count > 2 ? arguments[1] : "";
  char own[4096] = {0};
  if (strcmp(mode, "bystander") == 0)
    stand_by(arguments[2]);
  if (strcmp(mode, "executes") == 0) {
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0)
      return 1;
    await_open(own);
    execl(arguments[2], arguments[2], "bystander", arguments[3], (char*)0);
    return 1;
  }
  while (strcmp(mode, "waits") == 0)
    usleep(1000);
  const Function of_library = (Function)dlsym(dlopen(arguments[2], RTLD_NOW), "victim");
  await_open(arguments[2]);
  if (strcmp(mode, "swaps") == 0)
    rename(arguments[3], arguments[2]);
  else if (strcmp(mode, "writes") == 0)
    write_to(arguments[2]);
  for (;;) {
    of_library(5);
    usleep(1000);
  }
}
#endif
