// The mappings of code that stacks have led to, as in /proc/self/maps.  A mapping is recorded in
// the shared memory when one of its addresses is first met.  A mapping that has gone and come back
// unchanged is the same.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"
#include "recording/inprocess/runtime/own_maps.h"
#include "stream/proc/maps_line.h"

namespace pe::malloctrace {

/// The caller must hold a lock for all calls.
class ModuleList {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start(SharedMemory shared) noexcept;

  /// Returns the number of the module of `avma`, plus one, as in heap::Code::module.  0 if nothing
  /// executable is mapped there, or if there is no room.
  std::uint32_t find(std::uint64_t avma) noexcept;
  /// Forgets mappings that are gone or changed, and calls `on_gone(start, end)` for each.
  template <typename Function>
  void drop_unmapped(Function on_gone) noexcept {
    find_gone();
    for (std::size_t i = known_; i-- > 0;) {
      if (!is_gone_[i])
        continue;
      on_gone(ranges_[i].start, ranges_[i].end);
      ranges_[i] = ranges_[--known_];
    }
  }

 private:
  struct Range {
    std::uint64_t start, end;
    std::uint32_t number;  ///< of the module, plus one
  };
  std::uint32_t add(const stream::MapsLine& map) noexcept;
  std::uint32_t append(const stream::MapsLine& map) noexcept;
  void find_gone() noexcept;
  /// `number` is that of a module, plus one.
  [[nodiscard]] bool is_same(std::uint32_t number, const stream::MapsLine& map) const noexcept;

  SharedMemory shared_;
  PrivateArray<Range> ranges_;
  PrivateArray<bool> is_gone_;
  std::size_t known_;
  inprocess::MapsRoom room_;
};

}  // namespace pe::malloctrace
