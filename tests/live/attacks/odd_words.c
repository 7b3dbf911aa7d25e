// Programs whose command lines are hostile.  Prints a line when ready, and computes until it is
// killed.
//
// Usage: odd_words absent WORD: a page of WORD comes from another process, which never answers.
//        odd_words changes WORD: WORD changes all the time, and has no end.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPageBytes = 4096 };

static int make_absent(const char* word) {
  // The page before may have this program's own frames.
  char* const page = (char*)(((uintptr_t)word + kPageBytes - 1) & ~(uintptr_t)(kPageBytes - 1));
  const int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register range = {.range = {(uintptr_t)page, kPageBytes},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
  return faults >= 0 && !ioctl(faults, UFFDIO_API, &api) &&
         mmap(page, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
              0) != MAP_FAILED &&
         !ioctl(faults, UFFDIO_REGISTER, &range);
}

int main(int count, char** arguments) {
  if (count != 3)
    return 2;
  const int changes = strcmp(arguments[1], "changes") == 0;
  char* const word = arguments[2];
  const size_t bytes = strlen(word) + 1;
  if (!changes && (bytes < 2 * kPageBytes || !make_absent(word)))
    return 3;
  puts("ready");
  fflush(stdout);
  for (volatile unsigned i = 0;; ++i)
    if (changes && i % 1000 == 0)
      memset(word, (int)(i / 1000 % 255 + 1), bytes);
}
