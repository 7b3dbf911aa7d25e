// Stacks of waits, cut where they leave the program's own code.
//
// Every thread waits in the scheduler, below functions of the C library that say little.  So a
// stack of a wait ends at the innermost function of a script or of JIT-compiled code; without one,
// at that of the program itself; else at that of a library.  Its leaf names that function and the
// kind of wait: "audit_append: lock".
//
// A stack is of a wait if its leaf is what the thread waited for ("[lock]_[o]", or without marks
// "[lock]"), if its leaf has the mark of waits, or if the facts of the text say that all are
// (folded(5)).  Marks show the kind of code; without them, a stack ends right before "[lock]".
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "folded/facts.h"

namespace pe::stacktop {

class WaitStacks {
 public:
  /// The facts of the text, before its first stack.
  void read(std::span<const folded::Fact> facts);
  /// Returns the stack as it counts.  Valid until the next call.
  std::string_view cut(std::string_view stack);
  /// Was the last stack one of a wait?
  [[nodiscard]] bool is_wait() const noexcept { return is_wait_; }

 private:
  bool all_wait_ = false;
  bool is_wait_ = false;
  std::vector<std::string_view> frames_;
  std::string text_;
};

}  // namespace pe::stacktop
