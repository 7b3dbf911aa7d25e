// The DWARF expressions that compilers and hand-written assembly use for frames, as values.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace pe::unwind {

/// register + offset; or, if `is_load`, *(register + offset) + addend.
struct SimpleExpression {
  unsigned register_number = 0;  ///< DWARF's, 0-31
  std::int64_t offset = 0;
  bool is_load = false;
  std::uint64_t addend = 0;

  constexpr bool operator==(const SimpleExpression&) const noexcept = default;
};

/// breg offset; breg offset, deref; breg offset, deref, plus_uconst.  nullopt if it is any other.
std::optional<SimpleExpression> simple_expression(Bytes expression) noexcept;

}  // namespace pe::unwind
