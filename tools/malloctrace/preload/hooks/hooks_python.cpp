// Counts the blocks of Python's own allocator, by Python's public interface.
//
// Python has three allocators, its domains.  The one for raw memory is malloc, and counts anyway.
// Those for memory and for objects cut most blocks out of arenas.  They are wrapped, so that each
// block counts with its stack; malloc's blocks and the arenas in which they are do not count
// again, because only the outermost call of an allocator does (allocator_call.h).
//
// The wrappers are installed before Python starts.  Python replaces them if the user asks for
// another allocator (PYTHONMALLOC, -X dev): its blocks then count as malloc sees them.  Debug hooks
// and tracemalloc(3) are installed in front of them.
//
// Source: CPython, Include/cpython/pymem.h; Objects/obmalloc.c.
// SPDX-License-Identifier: MIT
#include "malloctrace/preload/hooks/hooks_python.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "languages/common/inside.h"
#include "malloctrace/preload/hooks/allocator_call.h"
#include "malloctrace/preload/hooks/hooks_new.h"
#include "malloctrace/preload/process.h"
#include "malloctrace/preload/record.h"
#include "malloctrace/preload/tracer.h"

namespace pe::malloctrace {

/// PyMemAllocatorEx.
struct Allocator {
  void* context;
  void* (*malloc)(void* context, std::size_t bytes);
  void* (*calloc)(void* context, std::size_t count, std::size_t bytes);
  void* (*realloc)(void* context, void* block, std::size_t bytes);
  void (*free)(void* context, void* block);
};

}  // namespace pe::malloctrace

// Null in a program without Python.  A query of dlsym(3) would allocate a message in every other
// program, and a sanitizer in it may not be ready for that.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)
#define PE_OF_PYTHON [[gnu::weak, gnu::visibility("default")]]
extern "C" {
PE_OF_PYTHON extern const std::byte _PyRuntime[];
PE_OF_PYTHON extern const unsigned long Py_Version;
PE_OF_PYTHON void PyMem_GetAllocator(int domain, pe::malloctrace::Allocator* into);
PE_OF_PYTHON void PyMem_SetAllocator(int domain, pe::malloctrace::Allocator* from);
/// That of the calling thread.
PE_OF_PYTHON void* PyGILState_GetThisThreadState();
/// Before 3.12 that of whichever thread runs, else that of the calling one if it runs.
PE_OF_PYTHON void* PyThreadState_GetUnchecked();   // since 3.13
PE_OF_PYTHON void* _PyThreadState_UncheckedGet();  // earlier
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,cppcoreguidelines-avoid-non-const-global-variables)

namespace pe::malloctrace {
namespace {

/// PyMemAllocatorDomain.
enum Domain : int { kRaw, kMemory, kObject, kDomains };

constinit std::array<Allocator, kDomains>
    real_allocators{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): one a process
constinit bool are_noted = false;

ScriptState find_state() noexcept {
  const void* own = PyGILState_GetThisThreadState();
  const void* running = PyThreadState_GetUnchecked != nullptr ? PyThreadState_GetUnchecked()
                                                              : _PyThreadState_UncheckedGet();
  return {reinterpret_cast<std::uint64_t>(own), own != nullptr && own == running};
}

/// Records a block.  Those that Python allocates before it has a thread do not show that the user
/// has asked for no other allocator.
void record_object(const void* block, std::size_t bytes, const void* frame) noexcept {
  record_block(block, bytes, frame, Owner::kInterpreter);
  if (!are_noted && PyGILState_GetThisThreadState() != nullptr) {
    are_noted = true;
    note_objects();
  }
}

/// Counts a block that `allocate` returns.
template <typename Allocate>
[[gnu::always_inline]] inline void* count_object(std::size_t bytes, const void* frame,
                                                 Allocate allocate) noexcept {
  if (is_inner_call(frame)) [[unlikely]]
    return allocate();
  void* block = call_allocator(frame, allocate);
  if (block == nullptr || !passes_between_samples(bytes))
    record_object(block, bytes, frame);
  return block;
}

template <Domain domain>
void* object_malloc(void* /*context*/, std::size_t bytes) noexcept {
  const Allocator& to = real_allocators[domain];
  return count_object(bytes, __builtin_frame_address(0),
                      [&] { return to.malloc(to.context, bytes); });
}

template <Domain domain>
void* object_calloc(void* /*context*/, std::size_t count, std::size_t bytes) noexcept {
  const Allocator& to = real_allocators[domain];
  return count_object(count * bytes, __builtin_frame_address(0),
                      [&] { return to.calloc(to.context, count, bytes); });
}

template <Domain domain>
void* object_realloc(void* /*context*/, void* block, std::size_t bytes) noexcept {
  const Allocator& to = real_allocators[domain];
  const void* frame = __builtin_frame_address(0);
  const auto resize = [&] { return to.realloc(to.context, block, bytes); };
  if (is_inner_call(frame)) [[unlikely]]
    return resize();
  Reallocation change(block, Owner::kInterpreter);
  void* result = call_allocator(frame, resize);
  if (result == nullptr)
    change.fail();
  else
    change.succeed();
  if (result == nullptr || !passes_between_samples(bytes))
    record_object(result, bytes, frame);
  return result;
}

template <Domain domain>
void object_free(void* /*context*/, void* block) noexcept {
  const Allocator& to = real_allocators[domain];
  const void* frame = __builtin_frame_address(0);
  if (is_inner_call(frame)) [[unlikely]]
    return to.free(to.context, block);
  if (block != nullptr && !is_no_sample(block))
    forget_object(block);
  call_allocator(frame, [&] { to.free(to.context, block); });
}

/// Python copies the five words one by one, and threads that run may see some of them.  So ours,
/// too, need no context in a program that runs already.
template <Domain domain>
void wrap() noexcept {
  Allocator now{};
  PyMem_GetAllocator(domain, &now);
  if (now.malloc == object_malloc<domain> || (process.is_attached && now.context != nullptr))
    return;
  real_allocators[domain] = now;
  Allocator ours{nullptr, object_malloc<domain>, object_calloc<domain>, object_realloc<domain>,
                 object_free<domain>};
  PyMem_SetAllocator(domain, &ours);
}

template <Domain domain>
void unwrap() noexcept {
  Allocator now{};
  PyMem_GetAllocator(domain, &now);
  if (now.malloc == object_malloc<domain>)
    PyMem_SetAllocator(domain, &real_allocators[domain]);
}

/// The memory of this process before other code runs.
struct OwnMemory {
  static bool read(std::uint64_t avma, std::span<std::byte> into) noexcept {
    std::memcpy(into.data(), reinterpret_cast<const std::byte*>(avma), into.size());  // NOLINT
    return true;
  }
};

}  // namespace

void start_python() noexcept {
  if (_PyRuntime == nullptr || &Py_Version == nullptr || PyMem_GetAllocator == nullptr ||
      PyMem_SetAllocator == nullptr || PyGILState_GetThisThreadState == nullptr ||
      (PyThreadState_GetUnchecked == nullptr && _PyThreadState_UncheckedGet == nullptr))
    return;
  OwnMemory memory;
  const auto runtime = reinterpret_cast<std::uint64_t>(_PyRuntime);
  const auto layout = languages::find_own_python(memory, Py_Version, runtime);
  if (!layout)
    return;
  begin_scripts({*layout, runtime}, find_state);
  real.may_call_hooks = true;
  wrap<kMemory>();
  wrap<kObject>();
}

void stop_python() noexcept {
  if (process.find_script != find_state)
    return;
  unwrap<kMemory>();
  unwrap<kObject>();
}

}  // namespace pe::malloctrace
