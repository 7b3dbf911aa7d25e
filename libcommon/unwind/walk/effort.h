// Limits the cost of the rows of one stack that are interpreted anew for each frame.
//
// A malicious table can make such a row as expensive as a megabyte of instructions.  Valid rows
// take some hundred bytes.  Without a limit, a stack of 4,000 such frames takes minutes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "unwind/cfi/unwind_table.h"

namespace pe::unwind {

class Effort {
 public:
  /// Returns false once the effort is used up.
  bool spend(const UnwindTable::FullRow& row) noexcept {
    left_ = row.cost < left_ ? left_ - row.cost : 0;
    return left_ != 0;
  }

 private:
  std::size_t left_ = std::size_t{2} << 20;  ///< in the unit of FullRow::cost; some 10 ms
};

}  // namespace pe::unwind
