// A small evaluator of DWARF expressions, as far as call frame information uses them.
//
// Bounded: kMaxOperations operations, kMaxDepth values; every value is 64 bits and wraps.
// Memory is read from the copied stack alone.
//
// Source: DWARF 5, 2.5 "DWARF Expressions" and 6.4.2 (what is not allowed in CFI).
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

/// What an expression may look at.
struct ExpressionInput {
  const architecture::Registers& registers;
  const StackView& stack;
  std::optional<std::uint64_t> cfa;  ///< pushed first, and DW_OP_call_frame_cfa; none for the CFA's
};

/// The value on top at the end; or why there is none: kUnknownRegister, kNotCaptured (it reads
/// what was not copied), kUnusable (malformed, unknown operation, too long).
std::variant<std::uint64_t, Step> evaluate(Bytes expression, const ExpressionInput& input);

inline constexpr unsigned kMaxExpressionOperations = 1000;
inline constexpr unsigned kMaxExpressionDepth = 64;

}  // namespace pe::unwind
