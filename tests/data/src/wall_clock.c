// Preload this library: it moves the wall clock by the number of seconds in the file that
// WALL_CLOCK names.
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t ahead(void) {
  const char* path = getenv("WALL_CLOCK");
  char text[32] = "";
  const int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  if (read(fd, text, sizeof text - 1) < 0)
    text[0] = '\0';
  close(fd);
  return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int status = (int)syscall(SYS_clock_gettime, clock, now);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += ahead();
  return status;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec exact;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
    return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now != NULL)
    *now = exact.tv_sec;
  return exact.tv_sec;
}
