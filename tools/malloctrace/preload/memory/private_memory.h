// The tracer's own memory, which no allocator knows and no fork inherits.
//
// It is zero at first, costs nothing until it is touched, and is zero again in a forked child
// (madvise(2), MADV_WIPEONFORK).  So a child notices that its parent's knowledge is not valid.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

namespace pe::malloctrace {

/// nullptr if there is no memory.  All of these functions keep errno.
void* map_private(std::size_t bytes) noexcept;
void unmap_private(void* memory, std::size_t bytes) noexcept;
/// Zeroes the memory and returns its pages to the kernel.
void clear_private(void* memory, std::size_t bytes) noexcept;
/// Whether a range of addresses contains some of this memory.
bool is_private_memory(std::uint64_t start, std::uint64_t end) noexcept;
/// Clears the memory, which then belongs to nobody: unmap_all_private() leaves it alone.
void set_aside_private(void* memory, std::size_t bytes) noexcept;
/// Uses that memory again.
void take_back_private(void* memory, std::size_t bytes) noexcept;
/// Unmaps everything, or as many pieces as `most`.  Returns whether nothing is left.  Nobody may
/// use it: a forked child does so while it has one thread.
bool unmap_all_private(std::uint32_t most = ~0U) noexcept;

/// An array in such memory.  It is trivially constructed, so wiped memory holds empty arrays.
template <typename T>
class PrivateArray {
 public:
  /// Replaces the array with `count` zeros; false (and no change) if there is no memory.
  bool map(std::size_t count) noexcept {
    void* memory = map_private(count * sizeof(T));
    if (memory == nullptr)
      return false;
    data_ = static_cast<T*>(memory);
    size_ = count;
    return true;
  }
  void unmap() noexcept {
    if (data_ != nullptr)
      unmap_private(data_, size_ * sizeof(T));
    data_ = nullptr;
    size_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// Memory for requests that come before the real allocator is found: dlsym(3) itself allocates.
//
// There are 64 KiB, which are never given back.

/// Returns zeros, aligned to 16 or to `alignment` if that is more; nullptr if there is no room
/// left.
void* boot_allocate(std::size_t bytes, std::size_t alignment = 16) noexcept;
/// Whether a block is in this memory.
bool is_boot_block(const void* block) noexcept;
/// The number of these blocks, and one block by its number, for code that must recognise them in
/// another way.
std::size_t boot_block_count() noexcept;
const void* boot_block(std::size_t number) noexcept;
/// Returns how many bytes were asked for.
std::size_t boot_block_bytes(const void* block) noexcept;

}  // namespace pe::malloctrace
