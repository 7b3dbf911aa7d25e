// A program that runs on a stack beside memory that never comes: a file of its own FUSE mount.
// The mount answers no read.  Ends with status 7, or with 77 where it may not mount.
// Usage: unanswered SECONDS [asynchronous]
// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { kStatus = 7, kSkipped = 77, kFile = 2, kStack = 16 << 10, kBeyond = 256 << 10 };
static int device;
static unsigned init_flags;
static double seconds;
static ucontext_t back, coroutine;

static void fail(const char* what) {
  fprintf(stderr, "unanswered: %s: %s\n", what, strerror(errno));
  _exit(kSkipped);
}

static void answer(uint64_t unique, int error, const void* data, size_t bytes) {
  struct fuse_out_header head = {
      .len = (uint32_t)(sizeof head + bytes), .error = error, .unique = unique};
  const struct iovec parts[] = {{&head, sizeof head}, {(void*)(uintptr_t)data, bytes}};
  if (writev(device, parts, 2) < 0)
    fail("/dev/fuse");
}
static struct fuse_attr attributes(uint64_t inode) {
  return (struct fuse_attr){.ino = inode,
                            .size = inode == kFile ? kBeyond : 0,
                            .mode = inode == kFile ? S_IFREG | 0644 : S_IFDIR | 0755,
                            .nlink = 1,
                            .blksize = 4096};
}
static void handle(const struct fuse_in_header* head) {
  const struct fuse_init_out init = {
      .major = 7, .minor = 31, .max_write = 4096, .flags = init_flags};
  const struct fuse_entry_out entry = {.nodeid = kFile, .attr = attributes(kFile)};
  const struct fuse_attr_out attr = {.attr = attributes(head->nodeid)};
  const struct fuse_open_out opened = {.fh = 1};
  switch (head->opcode) {
    case FUSE_INIT:
      return answer(head->unique, 0, &init, sizeof init);
    case FUSE_LOOKUP:
      return answer(head->unique, 0, &entry, sizeof entry);
    case FUSE_GETATTR:
      return answer(head->unique, 0, &attr, sizeof attr);
    case FUSE_OPEN:
      return answer(head->unique, 0, &opened, sizeof opened);
    case FUSE_READ:
    case FUSE_INTERRUPT:
    case FUSE_FORGET:
      return;
    default:
      return answer(head->unique, -ENOSYS, NULL, 0);
  }
}
static void* serve(void* unused) {
  static char request[1 << 17];
  while (read(device, request, sizeof request) > 0 || errno == EINTR || errno == ENOENT)
    handle((const struct fuse_in_header*)(const void*)request);
  return unused;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
static void work(void) {
  for (const double end = now() + seconds; now() < end;)
    for (volatile int i = 0; i < 10000; ++i) {
    }
  swapcontext(&coroutine, &back);
}

static void write_to(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY);
  if (fd < 0 || write(fd, text, strlen(text)) < 0)
    fail(path);
  close(fd);
}

int main(int argc, char** argv) {
  seconds = argc > 1 ? atof(argv[1]) : 0;
  init_flags = argc > 2 ? FUSE_ASYNC_READ : 0;
  // A user namespace is enough for this.
  char ids[64], options[64], folder[] = "/tmp/unanswered.XXXXXX";
  snprintf(ids, sizeof ids, "0 %d 1", (int)geteuid());
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || mkdtemp(folder) == NULL)
    fail("unshare");
  write_to("/proc/self/setgroups", "deny");
  write_to("/proc/self/uid_map", ids);
  write_to("/proc/self/gid_map", ids);
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
  const int is_mounted = device >= 0 && mount("unanswered", folder, "fuse", 0, options) == 0;
  pthread_t server;
  if (is_mounted && pthread_create(&server, NULL, serve, NULL) != 0)
    fail("pthread_create");
  const int file = is_mounted ? openat(open(folder, O_PATH), "file", O_RDONLY) : -1;
  char* const stack =
      mmap(NULL, kStack + kBeyond, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (file < 0 ||
      mmap(stack + kStack, kBeyond, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
    fail("mount");
  // If it were still open at the end, exit(2) would ask the mount, and so wait for itself.
  close(file);
  umount2(folder, MNT_DETACH);
  rmdir(folder);
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = kStack;
  makecontext(&coroutine, work, 0);
  swapcontext(&back, &coroutine);
  return kStatus;
}
