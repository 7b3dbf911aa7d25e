// The build ids of what the dynamic linker has loaded into this process, read where it is mapped.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "base/byte_reader.h"

namespace pe::inprocess {

struct Module {
  static constexpr std::size_t kMostIdBytes = 20;  ///< as records have it
  std::uint64_t start, end;                        ///< of all of its segments
  std::uint32_t id_bytes;                          ///< 0: it has none
  std::array<std::byte, kMostIdBytes> id;
};

class ModuleList {
 public:
  /// What is loaded now.  Not while a fork may come: it holds the dynamic linker's lock.
  void read() noexcept;
  /// Of the module that has an address in it; empty if there is none.  Dies with the next read().
  [[nodiscard]] Bytes build_id_at(std::uint64_t avma) const noexcept;
  [[nodiscard]] std::uint32_t size() const noexcept { return count_; }

 private:
  static constexpr std::size_t kMost = 4096;
  friend struct ModuleVisitor;

  std::array<Module, kMost> all_;
  std::uint32_t count_;
};

}  // namespace pe::inprocess
