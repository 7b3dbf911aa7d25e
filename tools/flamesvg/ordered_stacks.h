// Stacks in the order in which flamegraph.pl puts lines: by their bytes, a stack
// before those that go on from it.
//
// Input that is in order already, as all our own is, costs what lines do not share
// with the one before, and 56 bytes a line.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_arena.h"
#include "folded/folded_line.h"

namespace pe::flamesvg {

class OrderedStacks {
 public:
  void add(const folded::FoldedLine& line);

  /// Calls `take(FoldedLine)` for every line, in order.
  template <typename Take>
  void for_each(Take take) {
    if (!is_ordered_)
      put_in_order();
    std::string stack;
    for (const Entry& entry : entries_) {
      stack.resize(entry.common);
      stack += entry.rest;
      take(folded::FoldedLine{.stack = stack, .count = entry.count, .before = entry.before});
    }
  }

 private:
  struct Entry {
    std::size_t common;     ///< bytes shared with the stack before
    std::string_view rest;  ///< what follows them, in texts_
    folded::Count count;
    std::optional<folded::Count> before;
  };
  void put_in_order();

  StringArena texts_;
  std::vector<Entry> entries_;
  folded::FoldedLine last_line_;
  std::string last_;  ///< the stack of last_line_
  bool is_ordered_ = true;
};

}  // namespace pe::flamesvg
