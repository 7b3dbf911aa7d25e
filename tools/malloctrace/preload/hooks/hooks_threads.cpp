// Hooks a function that allocates while it holds a lock of the calling thread.  If we started to
// trace the thread there, we would wait for that lock.
//
// pthread_getattr_np(3) is that function, and we call it to find the thread's stack.  So we start a
// thread before it asks for its attributes, if it has not allocated anything yet.
// SPDX-License-Identifier: MIT
#include <pthread.h>

#include <cerrno>

#include "malloctrace/preload/hooks/real_functions.h"
#include "malloctrace/preload/tracer.h"

using namespace pe::malloctrace;

int hook_getattr(pthread_t thread, pthread_attr_t* attributes) noexcept
    PE_HOOK_OF("pthread_getattr_np");

int hook_getattr(pthread_t thread, pthread_attr_t* attributes) noexcept {
  if (!find_real_functions())
    return EAGAIN;
  if (thread_state.thread == nullptr)
    (void)begin_thread();
  return real.pthread_getattr_np(thread, attributes);
}
