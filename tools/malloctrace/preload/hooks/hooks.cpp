// The functions of the C library that the program calls instead of the real ones.
//
// Each has two parts.  A minimal part handles allocations between two samples and jumps to the real
// function.  The other part counts.  In both cases the program's frames start with the caller,
// because the first part leaves no frame.
// SPDX-License-Identifier: MIT
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "malloctrace/preload/hooks/allocator_call.h"
#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/hooks/hooks_python.h"
#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/process.h"
#include "malloctrace/preload/record.h"
#include "malloctrace/preload/tracer.h"
#include "recording/inprocess/runtime/call_filter.h"
#include "recording/inprocess/runtime/exec_hooks.h"

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
namespace pe::malloctrace {
namespace {

#define PE_NOINLINE [[gnu::noinline]]

bool is_ready() noexcept { return real.is_ready || find_real_functions(); }

/// Whether an allocation is between two samples, and the real function calls no hook: then nothing
/// else is to be done.
inline bool passes_unseen(std::size_t bytes) noexcept {
  return !real.may_call_hooks && passes_between_samples(bytes);
}

/// Counts a block that `allocate` returns, nullptr if it cannot.
template <typename Allocate>
[[gnu::always_inline]] inline void* count_block(std::size_t bytes, const void* frame,
                                                Allocate allocate) noexcept {
  if (is_inner_call(frame)) [[unlikely]]
    return allocate();
  void* block = call_allocator(frame, allocate);
  if (block == nullptr || !passes_between_samples(bytes))
    record_block(block, bytes, frame);
  return block;
}

PE_NOINLINE void* counted_malloc(std::size_t bytes) noexcept {
  if (!is_ready()) [[unlikely]]
    return boot_allocate(bytes);
  return count_block(bytes, __builtin_frame_address(0), [=] { return real.malloc(bytes); });
}

PE_NOINLINE void counted_free(void* block) noexcept {
  if (block == nullptr || is_boot_block(block) || !is_ready())
    return;
  const void* frame = __builtin_frame_address(0);
  if (is_inner_call(frame)) [[unlikely]] {
    forget_inner_block(block);
    return real.free(block);
  }
  forget_block(block);
  call_allocator(frame, [=] { real.free(block); });
}

PE_NOINLINE void* counted_calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t total = 0;
  const bool is_too_much = __builtin_mul_overflow(count, bytes, &total);
  if (!is_ready()) [[unlikely]]
    return is_too_much ? nullptr : boot_allocate(total);
  return count_block(total, __builtin_frame_address(0), [=] { return real.calloc(count, bytes); });
}

/// Moves a boot block to the real allocator.
void* move_boot_block(void* block, std::size_t bytes) noexcept {
  if (!is_ready())
    return nullptr;
  void* moved = real.malloc(bytes);
  if (moved != nullptr)
    std::memcpy(moved, block, std::min(bytes, boot_block_bytes(block)));
  return moved;
}

void* resize(void* block, std::size_t bytes, const void* frame) noexcept {
  Reallocation change(block);
  void* result = call_allocator(frame, [=] { return real.realloc(block, bytes); });
  const bool is_freed = result == nullptr && block != nullptr && bytes == 0;
  if (result == nullptr && !is_freed)
    change.fail();
  else
    change.succeed();
  if (result == nullptr && !is_freed)
    note_failure();
  else if (result != nullptr && !passes_between_samples(bytes))
    record_block(result, bytes, frame);
  return result;
}

PE_NOINLINE void* counted_realloc(void* block, std::size_t bytes) noexcept {
  if (is_boot_block(block)) [[unlikely]]
    return move_boot_block(block, bytes);
  if (!is_ready()) [[unlikely]]
    return boot_allocate(bytes);
  const void* frame = __builtin_frame_address(0);
  if (is_inner_call(frame)) [[unlikely]] {
    if (block != nullptr)
      forget_inner_block(block);
    return real.realloc(block, bytes);
  }
  return resize(block, bytes, frame);
}

}  // namespace
}  // namespace pe::malloctrace

using namespace pe::malloctrace;

PE_HOOK void* malloc(std::size_t bytes) noexcept {
  if (passes_unseen(bytes)) [[likely]]
    return real.malloc(bytes);
  return counted_malloc(bytes);
}

PE_HOOK void free(void* block) noexcept {
  if (is_no_sample(block)) [[likely]]
    return real.free(block);
  counted_free(block);
}

PE_HOOK void* calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t total = 0;
  if (!__builtin_mul_overflow(count, bytes, &total) && passes_unseen(total))
    return real.calloc(count, bytes);
  return counted_calloc(count, bytes);
}

PE_HOOK void* realloc(void* block, std::size_t bytes) noexcept {
  return counted_realloc(block, bytes);
}

PE_HOOK void* reallocarray(void* block, std::size_t count, std::size_t bytes) noexcept {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) {
    note_failure();
    errno = ENOMEM;
    return nullptr;
  }
  return counted_realloc(block, total);
}

PE_HOOK int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  if (!is_ready())
    return ENOMEM;
  const void* frame = __builtin_frame_address(0);
  const auto allocate = [=] { return real.posix_memalign(result, alignment, bytes); };
  if (is_inner_call(frame)) [[unlikely]]
    return allocate();
  const int error = call_allocator(frame, allocate);
  if (error != 0 || !passes_between_samples(bytes))
    record_block(error == 0 ? *result : nullptr, bytes, frame);
  return error;
}

/// Hooks a function that takes an alignment and a size.
#define PE_ALIGNED_HOOK(name)                                             \
  PE_HOOK void* name(std::size_t alignment, std::size_t bytes) noexcept { \
    if (!is_ready())                                                      \
      return boot_allocate(bytes, alignment);                             \
    return count_block(bytes, __builtin_frame_address(0),                 \
                       [=] { return real.name(alignment, bytes); });      \
  }
PE_ALIGNED_HOOK(aligned_alloc)
PE_ALIGNED_HOOK(memalign)

/// Hooks a function that aligns to pages.
#define PE_PAGE_HOOK(name)                                                                   \
  PE_HOOK void* name(std::size_t bytes) noexcept {                                           \
    if (!is_ready())                                                                         \
      return nullptr;                                                                        \
    return count_block(bytes, __builtin_frame_address(0), [=] { return real.name(bytes); }); \
  }
PE_PAGE_HOOK(valloc)
PE_PAGE_HOOK(pvalloc)

PE_HOOK std::size_t malloc_usable_size(void* block) noexcept {
  if (is_boot_block(block))
    return boot_block_bytes(block);
  return is_ready() && block != nullptr ? real.malloc_usable_size(block) : 0;
}

PE_HOOK int dlclose(void* handle) noexcept {
  if (!is_ready())
    return -1;
  const int result = real.dlclose(handle);
  note_unloaded();
  return result;
}

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
[[gnu::visibility("default")]] void _exit(int status) {
  note_end();
  if (is_ready())
    real.exit_now(status);
  __builtin_trap();
}
[[gnu::visibility("default")]] void _Exit(int status) noexcept { _exit(status); }
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

/// Whether the library was loaded into a program that runs already: malloctrace then has given it
/// this name, and calls malloctrace_attach().
bool is_loaded_later() noexcept {
  Dl_info own{};
  return ::dladdr(&real, &own) != 0 && own.dli_fname != nullptr &&
         std::string_view(own.dli_fname).starts_with("/proc/self/fd/");
}

/// The dynamic linker calls this before the constructors of all other libraries (-z initfirst), so
/// that their allocations are counted.
[[gnu::constructor]] void start_tracing(int /*argc*/, char** /*argv*/,
                                        char** environment) noexcept {
  if (is_loaded_later() || !is_ready())
    return;
  prepare_new();
  pe::inprocess::prepare_exec_hooks(environment, kSettingsVariable);
  pe::inprocess::prepare_filter_hooks();
  begin_process(environment);
  if (is_own_process())
    start_python();
}

[[gnu::destructor]] void end_tracing() noexcept { note_end(); }

}  // namespace
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace pe::inprocess {

bool follows_exec() noexcept {
  return malloctrace::follows_children() || malloctrace::is_own_process();
}

bool follows_spawn() noexcept { return malloctrace::follows_children(); }

// Nothing to do: the memory of a program is shared as long as its process runs.  The program has
// already counted everything up to this point.
bool begin_exec() noexcept { return false; }

void fail_exec(bool /*what_began*/) noexcept {}

void leave_out() noexcept { malloctrace::report_left_out(); }

}  // namespace pe::inprocess

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

namespace pe::inprocess {

void note_filter(std::span<const sock_filter> filter) noexcept {
  if (!is_harmless(filter, {SYS_mmap,       SYS_mprotect,
                            SYS_munmap,     SYS_madvise,
                            __NR_openat,    SYS_read,
                            SYS_close,      SYS_getpid,
                            SYS_gettid,     SYS_getppid,
                            SYS_mincore,    SYS_process_vm_readv,
                            SYS_prctl,      SYS_memfd_create,
                            SYS_ftruncate,  SYS_fcntl,
                            SYS_socket,     SYS_connect,
                            SYS_sendmsg,    SYS_setsockopt,
                            SYS_getsockopt, SYS_sched_getaffinity,
                            SYS_sched_yield}))
    malloctrace::stop_for_filter();
}

void note_strict_mode() noexcept { malloctrace::stop_for_filter(); }

bool may_copy() noexcept { return malloctrace::is_own_process(); }

}  // namespace pe::inprocess
