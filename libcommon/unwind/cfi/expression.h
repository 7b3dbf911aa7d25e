// Evaluates DWARF expressions, as far as call frame information uses them.
//
// The work is bounded by kMaxExpressionOperations operations and kMaxExpressionDepth values.  Every
// value has 64 bits and wraps.  Memory is read only from the copied stack.
//
// Source: DWARF 5, 2.5 "DWARF Expressions" and 6.4.2 (operations that CFI does not allow).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/byte_reader.h"
#include "unwind/architecture.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

/// The data that an expression may use.
struct ExpressionInput {
  const architecture::Registers& registers;
  const StackView& stack;
  std::optional<std::uint64_t> cfa;  ///< pushed first, and DW_OP_call_frame_cfa; none for the CFA's
};

/// Returns the value on top at the end, or the reason why there is none: kUnknownRegister,
/// kNotCaptured (it reads memory that was not copied), or kUnusable (malformed, unknown operation,
/// too long).
std::variant<std::uint64_t, Step> evaluate(Bytes expression, const ExpressionInput& input);

inline constexpr unsigned kMaxExpressionOperations = 1000;
inline constexpr unsigned kMaxExpressionDepth = 64;

// Converts to values the DWARF expressions that compilers and hand-written assembly use for frames.

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
