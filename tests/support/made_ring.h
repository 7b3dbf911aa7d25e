// A counter's ring that the test fills in place of the kernel; stream::Ring reads it.
// SPDX-License-Identifier: MIT
#pragma once

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "recording/counters/counter.h"

namespace pe::testing {

class MadeRing {
 public:
  static constexpr std::size_t kBytes = 4096;

  MadeRing() : file_(::memfd_create("ring", MFD_CLOEXEC)) {
    constexpr std::size_t kAll = 2 * kBytes;
    if (!file_ || ::ftruncate(file_.get(), kAll) != 0)
      throw std::runtime_error("no memory file");
    void* map = ::mmap(nullptr, kAll, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (map == MAP_FAILED)
      throw std::runtime_error("no mapping");
    page_ = static_cast<perf_event_mmap_page*>(map);
  }
  MadeRing(MadeRing&& other) noexcept
      : file_(std::move(other.file_)), page_(std::exchange(other.page_, nullptr)) {}
  MadeRing(const MadeRing&) = delete;
  MadeRing& operator=(const MadeRing&) = delete;
  MadeRing& operator=(MadeRing&&) = delete;
  ~MadeRing() {
    if (page_ != nullptr)
      ::munmap(page_, 2 * kBytes);
  }

  /// The reader of this ring.
  [[nodiscard]] stream::Ring open() const {
    int error = 0;
    auto ring = stream::Ring::map(file_, 1, error);
    if (!ring)
      throw std::runtime_error("no ring");
    return std::move(*ring);
  }

  /// Writes as the kernel does; the test ensures that there is room.
  void write(std::string_view record) {
    auto* data = reinterpret_cast<char*>(page_) + kBytes;
    for (const char byte : record)
      data[page_->data_head++ % kBytes] = byte;
  }
  /// The bytes that the reader has not released yet.
  [[nodiscard]] std::uint64_t taken() const { return page_->data_head - page_->data_tail; }

 private:
  Fd file_;
  perf_event_mmap_page* page_ = nullptr;
};

}  // namespace pe::testing
