// What the rows of one stack may cost that are interpreted anew for each frame.
//
// A hostile table can make such a row as expensive as a megabyte of instructions; honest ones take
// some hundred bytes.  Without a bound, a stack of 4,000 such frames takes minutes.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "unwind/cfi/unwind_table.h"

namespace pe::unwind {

class Effort {
 public:
  /// false once it is used up.
  bool spend(const UnwindTable::FullRow& row) noexcept {
    left_ = row.cost < left_ ? left_ - row.cost : 0;
    return left_ != 0;
  }

 private:
  std::size_t left_ = std::size_t{2} << 20;  ///< as FullRow::cost; some 10 ms
};

}  // namespace pe::unwind
