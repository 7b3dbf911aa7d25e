// Folded stacks added up: equal stacks become one line.
// SPDX-License-Identifier: MIT
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "base/string_arena.h"
#include "folded/folded_line.h"
#include "io/output.h"

namespace pe::folded {

/// Stack text -> sum of its counts.  Each text is stored once.
class FoldedCounts {
 public:
  /// Copies `stack` if it is new.  A sum that does not fit stays at Count::max().
  void add(std::string_view stack, Count count);

  [[nodiscard]] std::size_t size() const noexcept { return counts_.size(); }
  [[nodiscard]] bool empty() const noexcept { return counts_.empty(); }
  /// Did some sum not fit?
  [[nodiscard]] bool saturated() const noexcept { return saturated_; }

  /// Every stack once, in bytewise order.  The views live as long as *this.
  [[nodiscard]] std::vector<FoldedLine> sorted() const;

 private:
  // libstdc++'s hash reads eight bytes at a time; boost's reads one.
  using Map = boost::unordered_flat_map<std::string_view, Count, std::hash<std::string_view>>;

  StringArena texts_;
  Map counts_;
  bool saturated_ = false;
};

/// Writes sorted() as folded lines.
void write_folded(const FoldedCounts& counts, io::Output& out);

}  // namespace pe::folded
