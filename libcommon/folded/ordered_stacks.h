// Stacks in order: by their bytes, a stack before those that go on from it.
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

namespace pe::folded {

enum class StackOrder {
  kLines,   ///< whole lines, counts included, as flamegraph.pl orders them
  kStacks,  ///< stacks alone
};

class OrderedStacks {
 public:
  explicit OrderedStacks(StackOrder order) : order_(order) {}

  void add(const FoldedLine& line);

  /// Hands out the lines in order, once.
  class Reader {
   public:
    /// No line may be added to `stacks` meanwhile.
    explicit Reader(OrderedStacks& stacks) : stacks_(stacks) {
      if (!stacks.is_ordered_)
        stacks.put_in_order();
    }
    /// nullopt after the last.  The view dies with the next call.
    std::optional<FoldedLine> next() {
      if (next_ == stacks_.entries_.size())
        return std::nullopt;
      const Entry& entry = stacks_.entries_[next_++];
      stack_.resize(entry.common);
      stack_ += entry.rest;
      return FoldedLine{.stack = stack_, .count = entry.count, .before = entry.before};
    }

   private:
    OrderedStacks& stacks_;
    std::size_t next_ = 0;
    std::string stack_;
  };

 private:
  struct Entry {
    std::size_t common;     ///< bytes shared with the stack before
    std::string_view rest;  ///< what follows them, in texts_
    Count count;
    std::optional<Count> before;
  };
  void put_in_order();

  StackOrder order_;
  StringArena texts_;
  std::vector<Entry> entries_;
  FoldedLine last_line_;
  std::string last_;  ///< the stack of last_line_
  bool is_ordered_ = true;
};

}  // namespace pe::folded
