/* Ten million pairs of malloc and free on eight threads; many blocks are freed by another thread
 * than allocated them.  Writes its counts to standard output, as `name value` pairs like those of
 * heap_dump.
 *
 *     heap_stress [PAIRS_OF_EACH_THREAD]
 *
 * SPDX-License-Identifier: MIT
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))
enum { kThreads = 8, kHeld = 64, kLeakEvery = 5000 };

static long pairs = 1250000;
static _Atomic(void*) handed_over[kThreads];

struct Thread {
  uint64_t random;
  long number, bytes, count, leaked, leaked_count;
};

static KEEP uint64_t next(struct Thread* thread) {
  thread->random = thread->random * 6364136223846793005ULL + 1442695040888963407ULL;
  return thread->random >> 33;
}

/* All threads call malloc in these two functions, so they share sites. */
static KEEP void* small_block(size_t size) {
  void* block = malloc(size);
  __asm__ volatile("" : "+r"(block));
  return block;
}

static KEEP void* large_block(size_t size) {
  void* block = malloc(size);
  __asm__ volatile("" : "+r"(block));
  return block;
}

static KEEP void* work(void* argument) {
  struct Thread* thread = argument;
  void* held[kHeld] = {0};
  for (long i = 0; i < pairs; ++i) {
    const size_t size = 16 + next(thread) % 497;
    void* block = size < 256 ? small_block(size) : large_block(size);
    thread->bytes += size;
    ++thread->count;
    if (i % kLeakEvery == 0) { /* never freed */
      thread->leaked += size;
      ++thread->leaked_count;
      continue;
    }
    void** place = &held[next(thread) % kHeld];
    void* old = *place;
    *place = block;
    if (i % 4 == 0) /* the next thread frees it, if it is in time */
      old = atomic_exchange(&handed_over[(thread->number + 1) % kThreads], old);
    free(old);
    free(atomic_exchange(&handed_over[thread->number], NULL));
  }
  for (int i = 0; i < kHeld; ++i)
    free(held[i]);
  return NULL;
}

int main(int argc, char** argv) {
  static struct Thread threads[kThreads];
  pthread_t ids[kThreads];
  if (argc > 1)
    pairs = atol(argv[1]);
  for (int i = 0; i < kThreads; ++i) {
    threads[i].number = i;
    threads[i].random = 7 + (uint64_t)i;
    if (pthread_create(&ids[i], NULL, work, &threads[i]))
      return 1;
  }
  long bytes = 0, count = 0, leaked = 0, leaked_count = 0;
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(ids[i], NULL);
    bytes += threads[i].bytes;
    count += threads[i].count;
    leaked += threads[i].leaked;
    leaked_count += threads[i].leaked_count;
  }
  for (int i = 0; i < kThreads; ++i)
    free(atomic_exchange(&handed_over[i], NULL));
  char text[200];
  const int size = snprintf(text, sizeof text, "bytes %ld count %ld live %ld live_count %ld\n",
                            bytes, count, leaked, leaked_count);
  return write(1, text, (size_t)size) == size ? 0 : 3;
}
