// Tracks how far each section of the shared memory is open: readable and writable.
//
// A section starts small and doubles, ahead of its use.  The rest of the 24 GiB is mapped without
// access.  Otherwise a program that reads all readable memory would fill the file with pages of
// zeros.  Examples are valgrind, searching for leaks, and a debugger that writes a core file.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pe::malloctrace {

/// The sections that grow.
enum class Section : std::uint8_t { kCodes, kStacks, kSites, kWides, kThreads };

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
  static constexpr std::size_t kSections = 5;

  bool grow(Section section, std::uint64_t bytes) noexcept;

  std::byte* base_;
  std::array<std::uint64_t, kSections> open_;  ///< open bytes of each section
};

}  // namespace pe::malloctrace
