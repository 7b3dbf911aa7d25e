// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/private_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/pages.h"

namespace pe::malloctrace {
namespace {

struct Region {
  std::atomic<void*> memory;
  std::size_t bytes;
};

/// All mapped regions, for a child to unmap; not wiped.  A region that finds no place here stays
/// mapped in the child.
struct Regions {
  std::array<Region, 4096> all;
  std::atomic<std::uint32_t> used;  ///< places that were ever in use
};
constinit Regions
    regions{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

void note(void* memory, std::size_t bytes) noexcept {
  for (std::uint32_t i = 0; i < regions.all.size(); ++i) {
    Region& region = regions.all[i];
    void* nothing = nullptr;
    void* const taken = &regions;  // marks the place until its size is known
    if (region.memory.load(std::memory_order_relaxed) != nullptr ||
        !region.memory.compare_exchange_strong(nothing, taken))
      continue;
    region.bytes = bytes;
    region.memory.store(memory, std::memory_order_release);
    std::uint32_t used = regions.used.load();
    while (used <= i && !regions.used.compare_exchange_weak(used, i + 1)) {
    }
    return;
  }
}

void forget(const void* memory) noexcept {
  const std::uint32_t used = regions.used.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (regions.all[i].memory.load() == memory)
      return regions.all[i].memory.store(nullptr);
  }
}

}  // namespace

void* map_private(std::size_t bytes) noexcept {
  const inprocess::KeepErrno keep;
  void* memory = inprocess::map_pages<void>(bytes);
  if (memory == nullptr)
    return nullptr;
  ::syscall(SYS_madvise, memory, bytes, MADV_WIPEONFORK);
  note(memory, bytes);
  return memory;
}

void unmap_private(void* memory, std::size_t bytes) noexcept {
  const inprocess::KeepErrno keep;
  forget(memory);
  ::syscall(SYS_munmap, memory, bytes);
}

void clear_private(void* memory, std::size_t bytes) noexcept {
  const inprocess::KeepErrno keep;
  ::syscall(SYS_madvise, memory, bytes, MADV_DONTNEED);
}

bool is_private_memory(std::uint64_t start, std::uint64_t end) noexcept {
  const std::uint32_t used = regions.used.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    const auto avma = reinterpret_cast<std::uint64_t>(regions.all[i].memory.load());
    if (avma >= start && avma < end)
      return true;
  }
  return false;
}

void unmap_inherited() noexcept {
  const inprocess::KeepErrno keep;
  const std::uint32_t used = regions.used.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    Region& region = regions.all[i];
    void* memory = region.memory.exchange(nullptr);
    if (memory != nullptr && memory != &regions)
      ::syscall(SYS_munmap, memory, region.bytes);
  }
  regions.used.store(0);
}

}  // namespace pe::malloctrace
