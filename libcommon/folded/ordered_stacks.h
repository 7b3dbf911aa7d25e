// Stacks in bytewise order: a stack comes before those that extend it.
//
// All our own output is already in order.  Such input takes 64 bytes a line, and
// the bytes of each stack that differ from the line before.
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

class OrderedStacks {
 public:
  void add(const FoldedLine& line);

  /// Returns the lines in order, once.
  class Reader {
   public:
    /// No line may be added to `stacks` while the reader exists.
    explicit Reader(OrderedStacks& stacks) : stacks_(stacks) {
      if (!stacks.is_ordered_)
        stacks.put_in_order();
    }
    /// Returns nullopt after the last line.  The view is valid until the next call.
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
    std::string_view rest;  ///< the bytes after the shared ones, in texts_
    Count count;
    std::optional<Count> before;
  };
  void put_in_order();

  StringArena texts_;
  std::vector<Entry> entries_;
  std::string last_;  ///< the last stack
  bool is_ordered_ = true;
};

}  // namespace pe::folded
