// Converts to values the DWARF expressions that compilers and hand-written assembly use for frames.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace pe::unwind {

/// register + offset; or, if `is_load`, *(register + offset) + addend.
struct SimpleExpression {
  unsigned register_number = 0;  ///< DWARF number, 0-31
  std::int64_t offset = 0;
  bool is_load = false;
  std::uint64_t addend = 0;

  constexpr bool operator==(const SimpleExpression&) const noexcept = default;
};

/// Accepts breg offset; breg offset, deref; and breg offset, deref, plus_uconst.  Returns nullopt
/// for any other expression.
std::optional<SimpleExpression> simple_expression(Bytes expression) noexcept;

}  // namespace pe::unwind
