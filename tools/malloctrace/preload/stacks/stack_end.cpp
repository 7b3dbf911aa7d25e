// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_end.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "malloctrace/preload/hooks/real_functions.h"

extern "C" {
/// The place where the kernel has put the first thread's arguments (ld.so of glibc).
extern void* __libc_stack_end;  // NOLINT
}

namespace pe::malloctrace {
namespace {

/// The kernel keeps at least this much below the first thread's stack free of mappings
/// (mmap_base() in arch/x86/mm/mmap.c).
constexpr std::uint64_t kFirstStackBytes = std::uint64_t{128} << 20;
constexpr std::uint64_t kArgumentBytes = 64;  ///< argc, argv, and more

/// Returns an address up to which all pages from `start` on are mapped: `end`, or less; 0 if the
/// kernel reports one that is not.  A stack deeper than a megabyte is not worth more of the
/// kernel's time.
std::uint64_t mapped_end(std::uint64_t start, std::uint64_t end) noexcept {
  constexpr std::uint64_t kPage = 4096;
  constexpr std::uint64_t kMost = 256;
  std::array<unsigned char, kMost> residence;
  const std::uint64_t from = start & ~(kPage - 1);
  const std::uint64_t to = std::min(end, from + kMost * kPage);
  const inprocess::KeepErrno keep;
  auto* first = reinterpret_cast<void*>(from);  // NOLINT(performance-no-int-to-ptr)
  return ::mincore(first, to - from, residence.data()) == 0 ? to : 0;
}

}  // namespace

void find_own_stack(Thread& thread) noexcept {
  const auto sp = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  const auto first_end = reinterpret_cast<std::uint64_t>(__libc_stack_end) + kArgumentBytes;
  if (sp < first_end && first_end - sp < kFirstStackBytes) {
    thread.stack_low = first_end - kFirstStackBytes;
    thread.stack_end = first_end;
    return;
  }
  pthread_attr_t attributes;
  if (real.pthread_getattr_np(::pthread_self(), &attributes) != 0)
    return;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (::pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    thread.stack_low = reinterpret_cast<std::uint64_t>(low);
    thread.stack_end = thread.stack_low + bytes;
  }
  ::pthread_attr_destroy(&attributes);
}

StackEnd end_of_stack(Thread& thread, std::uint64_t sp) noexcept {
  if (sp >= thread.stack_low && sp < thread.stack_end)
    return {thread.stack_end};
  const auto is_known = [&] { return sp >= thread.foreign_low && sp < thread.foreign_end; };
  // The stack may have been unmapped and replaced since.  Or a part of the mapping may be gone: the
  // kernel may have merged the mappings of several stacks.
  if (is_known())
    if (const std::uint64_t end = mapped_end(sp, thread.foreign_end); end != 0)
      return {end, true};
  thread.foreign_low = thread.foreign_end = 0;
  for_each_own_mapping(thread.room, [&](const stream::MapsLine& map) {
    if (sp < map.start || sp >= map.end)
      return true;
    if (map.readable) {
      thread.foreign_low = map.start;
      thread.foreign_end = map.end;
    }
    return false;
  });
  return {is_known() ? thread.foreign_end : 0, true};
}

}  // namespace pe::malloctrace
