// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/private_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "recording/inprocess/keep_errno.h"
#include "recording/inprocess/runtime/own_memory.h"

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

void set_aside_private(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr)
    return;
  forget(memory);
  clear_private(memory, bytes);
}

void take_back_private(void* memory, std::size_t bytes) noexcept { note(memory, bytes); }

bool is_private_memory(std::uint64_t start, std::uint64_t end) noexcept {
  const std::uint32_t used = regions.used.load();
  for (std::uint32_t i = 0; i < used; ++i) {
    const auto avma = reinterpret_cast<std::uint64_t>(regions.all[i].memory.load());
    if (avma >= start && avma < end)
      return true;
  }
  return false;
}

bool unmap_all_private(std::uint32_t most) noexcept {
  const inprocess::KeepErrno keep;
  for (std::uint32_t i = regions.used.load(); i > 0; --i) {
    if (most == 0)
      return false;
    Region& region = regions.all[i - 1];
    void* memory = region.memory.exchange(nullptr);
    if (memory == nullptr || memory == &regions)
      continue;
    ::syscall(SYS_munmap, memory, region.bytes);
    --most;
    regions.used.store(i - 1);
  }
  regions.used.store(0);
  return true;
}

namespace {

constexpr std::size_t kAlignment = 16;

struct BootMemory {
  alignas(4096) std::array<std::byte, 65536> bytes;
  std::atomic<std::size_t> used;
  std::array<std::byte*, 512> blocks;
  std::atomic<std::size_t> count;
};
constinit BootMemory
    memory{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): one a process

}  // namespace

void* boot_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment < kAlignment)
    alignment = kAlignment;
  if (bytes > memory.bytes.size() || alignment > memory.bytes.size())
    return nullptr;
  // The size is stored before the block.  Both fit into `taken`, wherever it starts.
  const std::size_t taken = (bytes + kAlignment + alignment + kAlignment - 1) & ~(kAlignment - 1);
  const std::size_t start = memory.used.fetch_add(taken);
  if (start + taken > memory.bytes.size())
    return nullptr;
  const std::size_t at = (start + kAlignment + alignment - 1) & ~(alignment - 1);
  const std::size_t size_at = at - sizeof bytes;
  if (size_at >= memory.bytes.size())  // never true, but g++ 12 needs it
    return nullptr;
  std::byte* block = memory.bytes.data() + at;
  std::memcpy(memory.bytes.data() + size_at, &bytes, sizeof bytes);
  const std::size_t number = memory.count.fetch_add(1);
  if (number >= memory.blocks.size())
    return nullptr;
  memory.blocks[number] = block;
  return block;
}

std::size_t boot_block_count() noexcept {
  return std::min(memory.count.load(), memory.blocks.size());
}

const void* boot_block(std::size_t number) noexcept { return memory.blocks[number]; }

bool is_boot_block(const void* block) noexcept {
  const auto offset = reinterpret_cast<std::uintptr_t>(block) -
                      reinterpret_cast<std::uintptr_t>(memory.bytes.data());
  return offset < memory.bytes.size();
}

std::size_t boot_block_bytes(const void* block) noexcept {
  std::size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const std::byte*>(block) - sizeof bytes, sizeof bytes);
  return bytes;
}

}  // namespace pe::malloctrace
