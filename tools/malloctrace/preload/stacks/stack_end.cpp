// SPDX-License-Identifier: MIT
#include "malloctrace/preload/stacks/stack_end.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace pe::malloctrace {
namespace {

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

StackEnd end_of_stack(Thread& thread, std::uint64_t sp) noexcept {
  if (thread.stack.contains(sp))
    return {thread.stack.end};
  inprocess::StackBounds& foreign = thread.foreign_stack;
  // The stack may have been unmapped and replaced since.  Or a part of the mapping may be gone: the
  // kernel may have merged the mappings of several stacks.
  if (foreign.contains(sp))
    if (const std::uint64_t end = mapped_end(sp, foreign.end); end != 0)
      return {end, true};
  foreign = {};
  inprocess::for_each_own_mapping(thread.room, [&](const stream::MapsLine& map) {
    if (sp < map.start || sp >= map.end)
      return true;
    if (map.readable)
      foreign = {map.start, map.end};
    return false;
  });
  return {foreign.end, true};
}

}  // namespace pe::malloctrace
