// The build ids of the modules that the dynamic linker has loaded, read from this process's memory.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "base/byte_reader.h"

namespace pe::inprocess {

struct Module {
  static constexpr std::size_t kMostIdBytes = 20;  ///< as in records
  std::uint64_t start, end;                        ///< the range of all its segments
  std::uint32_t id_bytes;                          ///< 0: no build id
  std::array<std::byte, kMostIdBytes> id;
};

class ModuleList {
 public:
  /// Reads the list of loaded modules.  No fork may happen meanwhile: this holds the dynamic
  /// linker's lock.
  void read() noexcept;
  /// Returns the build id of the module that contains an address; empty if there is none.  Valid
  /// until the next read().
  [[nodiscard]] Bytes build_id_at(std::uint64_t avma) const noexcept;
  [[nodiscard]] std::uint32_t size() const noexcept { return count_; }

 private:
  static constexpr std::size_t kMost = 4096;
  friend struct ModuleVisitor;

  std::array<Module, kMost> all_;
  std::uint32_t count_;
};

}  // namespace pe::inprocess
