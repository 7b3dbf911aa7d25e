// An array that grows in place, in pages of its own.
//
// The kernel moves its pages (mremap(2)).  A vector copies its items, so it needs memory for both
// copies, and leaves gaps in the heap.  Meant for few arrays of many items.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace pe::painting {

/// Growing invalidates references to items.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;
  GrowingArray(GrowingArray&&) = delete;
  GrowingArray& operator=(GrowingArray&&) = delete;
  ~GrowingArray() {
    if (capacity_ > 0)
      ::munmap(items_, capacity_ * sizeof(T));
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) { return items_[i]; }
  const T& operator[](std::size_t i) const { return items_[i]; }
  /// Returns all items.
  [[nodiscard]] std::span<const T> all() const noexcept { return {items_, size_}; }

  void push_back(const T& item) { append(std::span<const T>(&item, 1)); }
  /// Appends copies of `items`, which must not be in this array.
  void append(std::span<const T> items) {
    if (size_ + items.size() > capacity_)
      grow(size_ + items.size());
    std::uninitialized_copy(items.begin(), items.end(), items_ + size_);
    size_ += items.size();
  }

 private:
  void grow(std::size_t needed) {
    constexpr std::size_t kLeast = 4096;  // a page or more
    if (needed > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T))
      throw std::bad_array_new_length();
    const std::size_t capacity = std::max({needed, capacity_ + capacity_ / 2, kLeast});
    void* const moved =
        capacity_ == 0
            ? ::mmap(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            : ::mremap(items_, capacity_ * sizeof(T), capacity * sizeof(T), MREMAP_MAYMOVE);
    if (moved == MAP_FAILED)
      throw std::bad_alloc();
    items_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

  T* items_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace pe::painting
