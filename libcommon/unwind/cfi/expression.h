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
#include "unwind/walk/stack_view.h"
#include "unwind/walk/step.h"

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

}  // namespace pe::unwind
