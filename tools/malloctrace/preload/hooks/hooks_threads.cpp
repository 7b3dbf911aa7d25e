// What holds a lock of the calling thread while it allocates, which beginning to trace that thread
// would wait for.
//
// pthread_getattr_np(3) does so, and is what tells where the thread's stack is: a thread that asks
// for its attributes before it has allocated anything is begun before.
// SPDX-License-Identifier: MIT
#include <pthread.h>

#include <cerrno>

#include "malloctrace/preload/hooks/real_functions.h"
#include "malloctrace/preload/tracer.h"

using namespace pe::malloctrace;

int hook_getattr(pthread_t thread, pthread_attr_t* attributes) noexcept asm("pthread_getattr_np")
    __attribute__((visibility("default")));

int hook_getattr(pthread_t thread, pthread_attr_t* attributes) noexcept {
  if (!find_real_functions())
    return EAGAIN;
  if (thread_state.thread == nullptr)
    (void)begin_thread();
  return real.pthread_getattr_np(thread, attributes);
}
