// SPDX-License-Identifier: MIT
#include "malloctrace/preload/memory/boot_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace pe::malloctrace {
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
