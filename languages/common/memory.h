// The memory of a process that runs an interpreter.
//
// It is untrusted, and may change while it is read.  Structures are small and close to each other,
// so whole pages are read, and each is read once for a sample.  The process pays for each page.
// Once it has spent its part of the budget, nothing is readable, so loops over its memory end.
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/budget.h"
#include "base/byte_reader.h"

namespace pe::languages {

/// Copies code at `avma`; false if a part is unreadable.
using ReadCode = std::function<bool(std::uint64_t avma, std::span<std::byte> into)>;

class Memory {
 public:
  /// Copies the memory at `avma` until `into` is full.  Returns the number of bytes: fewer if a
  /// part is unreadable.
  using Read = std::function<std::size_t(std::uint64_t avma, std::span<std::byte> into)>;

  template <std::convertible_to<Read> F>
  Memory(F read, const Spender& spender = {})  // NOLINT(google-explicit-constructor)
      : read_(std::move(read)), spender_(spender) {}

  /// Pays for the process's reading.
  [[nodiscard]] Spender& spender() noexcept { return spender_; }

  /// The process may have changed since: reads everything anew.
  void forget() noexcept { ++time_; }

  /// The process has ended, or runs another program: nothing is readable any more.
  void end() {
    read_ = [](std::uint64_t, std::span<std::byte>) { return std::size_t{0}; };
    forget();
  }

  /// Fills `into`; false if a part is unreadable.
  bool read(std::uint64_t avma, std::span<std::byte> into) {
    if (!spender_.may_go_on())
      return false;
    while (!into.empty()) {
      const std::uint64_t offset = avma % kPageBytes;
      const Page* page = page_at(avma - offset);
      if (page == nullptr)
        return false;
      const auto bytes = static_cast<std::size_t>(std::min(kPageBytes - offset, into.size()));
      std::copy_n(page->bytes.begin() + static_cast<std::ptrdiff_t>(offset), bytes, into.begin());
      into = into.subspan(bytes);
      avma += bytes;
    }
    return true;
  }

  /// Returns the T at `avma`; nullopt if a part is unreadable.
  template <TriviallyCopyable T>
  std::optional<T> value(std::uint64_t avma) {
    T value;
    if (!read(avma, std::as_writable_bytes(std::span(&value, 1))))
      return std::nullopt;
    return value;
  }
  /// Returns the pointer at `avma`; nullopt if it is unreadable.
  std::optional<std::uint64_t> pointer(std::uint64_t avma) { return value<std::uint64_t>(avma); }

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::size_t kPages = 64;
  struct Page {
    std::uint64_t start = 1;  ///< avma
    std::uint64_t time = 0;   ///< it is valid while this is time_
    std::vector<std::byte> bytes;
  };

  /// Returns null if the page is unreadable.
  const Page* page_at(std::uint64_t start) {
    Page& page = pages_[start / kPageBytes % kPages];
    if (page.start != start || page.time != time_) {
      if (!spender_.may_read(kPageBytes))
        return nullptr;
      page.bytes.resize(kPageBytes);
      page.start = start;
      page.time = time_;
      if (read_(start, page.bytes) != kPageBytes)
        page.bytes.clear();
    }
    return page.bytes.empty() ? nullptr : &page;
  }

  Read read_;
  Spender spender_;
  std::uint64_t time_ = 1;
  std::vector<Page> pages_{kPages};  ///< by the lowest bits of the page's number
};

}  // namespace pe::languages
