// Memory of the tracer's own, which no allocator knows and no fork inherits.
//
// It is zero at first, costs nothing until it is touched, and is zero again in a forked child
// (madvise(2), MADV_WIPEONFORK): a child finds out that nothing of what its parent knew holds.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

namespace pe::malloctrace {

/// nullptr if there is none.  errno is kept by all of these.
void* map_private(std::size_t bytes) noexcept;
void unmap_private(void* memory, std::size_t bytes) noexcept;
/// Makes it zero and gives the pages back.
void clear_private(void* memory, std::size_t bytes) noexcept;
/// Whether some of it is in a range of addresses.
bool is_private_memory(std::uint64_t start, std::uint64_t end) noexcept;
/// In a forked child, while it has one thread: gives back the addresses of everything that its
/// parent had mapped.
void unmap_inherited() noexcept;

/// An array that lives in such memory; trivially constructed, so that wiped memory holds empty
/// ones.
template <typename T>
class PrivateArray {
 public:
  /// Room for `count` zeros instead of what there was; false (and no change) if there is none.
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

}  // namespace pe::malloctrace
