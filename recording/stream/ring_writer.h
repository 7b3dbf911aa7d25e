// Writes records to a ring of our own memory (counter.h), as the kernel does to a counter's.  One
// thread writes; it never waits for the reader.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "recording/counters/counter.h"

namespace pe::stream {

class RingWriter {
 public:
  /// `ring`, from Ring::allocate(), must outlive this.  It may be moved.
  explicit RingWriter(const Ring& ring) noexcept
      : page_(static_cast<perf_event_mmap_page*>(ring.map_)),
        data_(static_cast<std::byte*>(ring.map_) + ring.data_offset_),
        ring_bytes_(ring.map_bytes_ - ring.data_offset_) {}

  [[nodiscard]] std::size_t ring_bytes() const noexcept { return ring_bytes_; }
  /// Returns how many more bytes can be added.
  [[nodiscard]] std::size_t room() const noexcept {
    return ring_bytes_ -
           static_cast<std::size_t>(
               head_ - std::atomic_ref(page_->data_tail).load(std::memory_order_acquire));
  }
  /// Adds bytes of a record; there must be room.  A record's size is a multiple of eight.
  void add(Bytes bytes) noexcept {
    const std::size_t offset = head_ & (ring_bytes_ - 1);
    const std::size_t first = std::min(bytes.size(), ring_bytes_ - offset);
    std::memcpy(data_ + offset, bytes.data(), first);
    if (first < bytes.size())
      std::memcpy(data_, bytes.data() + first, bytes.size() - first);
    head_ += bytes.size();
  }
  /// Makes the added records visible to the reader, all at once.
  void publish() noexcept {
    std::atomic_ref(page_->data_head).store(head_, std::memory_order_release);
  }

 private:
  perf_event_mmap_page* page_;
  std::byte* data_;
  std::size_t ring_bytes_;
  std::uint64_t head_ = 0;
};

}  // namespace pe::stream
