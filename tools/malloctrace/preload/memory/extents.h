// How far each section of the shared memory is open: readable and writable.
//
// A section begins small and grows by doubling, ahead of its use.  The rest of the 24 GiB is mapped
// without access.  Whoever reads all memory that can be read (valgrind, looking for leaks; a
// debugger that writes a core file) would fill the file with pages of zeros otherwise.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pe::malloctrace {

/// Those that grow.
enum class Section : std::uint8_t { kCodes, kWords, kSites, kWides, kThreads };

/// In zeroed memory.  Calls for one section are under a lock of the caller's.
class Extents {
 public:
  /// Opens what there is at first, of heap::kFileBytes that are mapped without access at `base`.
  /// False if there is no memory.
  bool start(std::byte* base) noexcept;
  /// Whether elements 0 to `count` - 1, of `size` bytes each, may be used; opens them if they are
  /// within the section's room, which is the caller's to see to.  False if there is no memory.
  bool open(Section section, std::uint64_t count, std::uint64_t size) noexcept {
    const std::uint64_t bytes = count * size;
    return bytes <= open_[static_cast<std::size_t>(section)] || grow(section, bytes);
  }

 private:
  static constexpr std::size_t kSections = 5;

  bool grow(Section section, std::uint64_t bytes) noexcept;

  std::byte* base_;
  std::array<std::uint64_t, kSections> open_;  ///< bytes of each
};

}  // namespace pe::malloctrace
