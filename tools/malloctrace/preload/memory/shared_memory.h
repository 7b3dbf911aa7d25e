// The sections of the memory that is shared with malloctrace: see malloctrace/heap/layout.h.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "malloctrace/heap/layout.h"
#include "recording/inprocess/atomics.h"

namespace pe::malloctrace {

// Tracks how far each section of the shared memory is open: readable and writable.
//
// A section starts small and doubles, ahead of its use.  The rest of the 24 GiB is mapped without
// access.  Otherwise a program that reads all readable memory would fill the file with pages of
// zeros.  Examples are valgrind, searching for leaks, and a debugger that writes a core file.

/// The sections that grow.
enum class Section : std::uint8_t { kCodes, kStacks, kSites, kWides, kThreads, kScripts, kCopies };

/// In zeroed memory.  The caller must hold a lock for each section that it uses.
class Extents {
 public:
  /// Opens the first part of each section; heap::kFileBytes are mapped without access at `base`.
  /// False if there is no memory.
  bool start(std::byte* base) noexcept;
  /// Whether elements 0 to `count` - 1, of `size` bytes each, may be used; opens them if necessary.
  /// The caller ensures that they are within the section's room.  False if there is no memory.
  bool open(Section section, std::uint64_t count, std::uint64_t size) noexcept {
    const std::uint64_t bytes = count * size;
    return bytes <= open_[static_cast<std::size_t>(section)] || grow(section, bytes);
  }

 private:
  static constexpr std::size_t kSections = 7;

  bool grow(Section section, std::uint64_t bytes) noexcept;

  std::byte* base_;
  std::array<std::uint64_t, kSections> open_;  ///< open bytes of each section
};

using inprocess::change;
using inprocess::count_up;
using inprocess::load_published;
using inprocess::load_relaxed;
using inprocess::publish;
using inprocess::store_relaxed;

class SharedMemory {
 public:
  SharedMemory() = default;
  /// heap::kFileBytes bytes at `base`, as far as `extents` has opened them; nullptr: all.
  explicit SharedMemory(std::byte* base, Extents* extents = nullptr) noexcept
      : base_(base), extents_(extents) {}

  [[nodiscard]] std::byte* base() const noexcept { return base_; }
  [[nodiscard]] heap::Header& header() const noexcept { return *at<heap::Header>(0); }
  [[nodiscard]] heap::Module* modules() const noexcept {
    return at<heap::Module>(heap::kModulesAt);
  }
  [[nodiscard]] heap::Code* codes() const noexcept { return at<heap::Code>(heap::kCodesAt); }
  [[nodiscard]] std::uint8_t* stacks() const noexcept { return at<std::uint8_t>(heap::kStacksAt); }
  [[nodiscard]] heap::SiteTotals* sites() const noexcept {
    return at<heap::SiteTotals>(heap::kSitesAt);
  }
  [[nodiscard]] heap::WideTotals* wides() const noexcept {
    return at<heap::WideTotals>(heap::kWidesAt);
  }
  [[nodiscard]] heap::ThreadSums* threads() const noexcept {
    return at<heap::ThreadSums>(heap::kThreadsAt);
  }
  [[nodiscard]] heap::Script* scripts() const noexcept {
    return at<heap::Script>(heap::kScriptsAt);
  }
  [[nodiscard]] std::byte* copies() const noexcept { return at<std::byte>(heap::kCopiesAt); }

  /// Whether elements 0 to `count` - 1 of a section may be used.  The caller must hold a lock and
  /// call this before a count in the header grows.
  template <typename T>
  [[nodiscard]] bool open(Section section, std::uint64_t count) const noexcept {
    return extents_ == nullptr || extents_->open(section, count, sizeof(T));
  }

 private:
  template <typename T>
  [[nodiscard]] T* at(std::uint64_t offset) const noexcept {
    return reinterpret_cast<T*>(base_ + offset);
  }

  std::byte* base_ = nullptr;
  Extents* extents_ = nullptr;
};

}  // namespace pe::malloctrace
