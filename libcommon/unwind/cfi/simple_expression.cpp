// SPDX-License-Identifier: MIT
#include "unwind/cfi/simple_expression.h"

#include <dwarf.h>

#include "unwind/cfi/pointer_encoding.h"

namespace pe::unwind {

std::optional<SimpleExpression> simple_expression(Bytes expression) noexcept {
  ByteReader in(expression);
  const auto first = in.take<std::uint8_t>();
  if (!first || *first < DW_OP_breg0 || *first > DW_OP_breg31)
    return std::nullopt;
  const auto offset = read_sleb128(in);
  if (!offset)
    return std::nullopt;
  SimpleExpression simple{.register_number = static_cast<unsigned>(*first - DW_OP_breg0),
                          .offset = *offset};
  if (in.empty())
    return simple;
  if (in.take<std::uint8_t>() != DW_OP_deref)
    return std::nullopt;
  simple.is_load = true;
  if (in.empty())
    return simple;
  if (in.take<std::uint8_t>() != DW_OP_plus_uconst)
    return std::nullopt;
  const auto addend = read_uleb128(in);
  if (!addend || !in.empty())
    return std::nullopt;
  simple.addend = *addend;
  return simple;
}

}  // namespace pe::unwind
