// SPDX-License-Identifier: MIT
#include "unwind/cfi/cfi_program.h"

#include <dwarf.h>

#include <algorithm>

namespace pe::unwind {
namespace {

using Kind = RegisterRule::Kind;

constexpr std::uint8_t kPrimaryMask = 0xc0;
constexpr std::uint8_t kOperandMask = 0x3f;

/// Multiplies a factored offset by its factor, and wraps as the machine does.
std::int64_t scaled(std::uint64_t factored, std::int64_t factor) noexcept {
  return static_cast<std::int64_t>(factored * static_cast<std::uint64_t>(factor));
}

std::optional<Bytes> take_block(ByteReader& in) noexcept {
  const auto size = read_uleb128(in);
  return size ? in.take_bytes(*size) : std::nullopt;
}

template <typename T>
std::optional<std::uint64_t> take_delta(ByteReader& in) noexcept {
  const auto delta = in.take<T>();
  return delta ? std::optional<std::uint64_t>(*delta) : std::nullopt;
}

}  // namespace

CfiProgram::CfiProgram(const Fde& fde, std::uint64_t data_svma, std::span<CfiRow> room)
    : fde_(fde),
      data_svma_(data_svma),
      in_(fde.instructions),
      room_(room),
      is_damaged_(fde.cie.return_address_register != architecture::kInstructionPointer),
      is_finished_(is_damaged_) {
  if (!is_damaged_ && !run_initial_instructions())
    is_damaged_ = is_finished_ = true;
  initial_ = current_;
}

/// Makes the row with which every function of the CIE starts.  A CIE's program cannot advance.
bool CfiProgram::run_initial_instructions() {
  AddressedReader in(fde_.cie.instructions, 0);
  while (!in.empty())
    if (run_one(in) != After::kGoOn)
      return false;
  return true;
}

bool CfiProgram::next() {
  from_ = location_;
  while (!is_finished_ && !in_.empty()) {
    const After after = run_one(in_);
    if (after == After::kGoOn)
      continue;
    is_damaged_ = after == After::kBad;
    is_finished_ = is_damaged_ || location_ >= fde_.bytes;
    to_ = std::min(location_, fde_.bytes);
    if (!is_damaged_ && from_ < to_)
      return true;
  }
  // The row of the last instructions holds for the rest of the function.
  if (is_finished_)
    return false;
  is_finished_ = true;
  to_ = fde_.bytes;
  return from_ < to_;
}

CfiProgram::After CfiProgram::run_one(AddressedReader& in) {
  const auto byte = in.take<std::uint8_t>();
  if (!byte)
    return After::kBad;
  const std::uint8_t operand = *byte & kOperandMask;
  switch (*byte & kPrimaryMask) {
    case DW_CFA_advance_loc:
      return advance(operand);
    case DW_CFA_offset: {
      const auto factored = read_uleb128(in);
      if (!factored)
        return After::kBad;
      return set_rule(operand, {Kind::kOffset, scaled(*factored, fde_.cie.data_alignment), {}});
    }
    case DW_CFA_restore:
      return restore(operand);
    default:
      return run_extended(*byte, in);
  }
}

CfiProgram::After CfiProgram::run_extended(std::uint8_t opcode, AddressedReader& in) {
  switch (opcode) {
    case DW_CFA_nop:
      return After::kGoOn;
    case DW_CFA_set_loc: {
      const auto svma = read_pointer(in, fde_.cie.pointer_encoding, data_svma_);
      return svma ? move_to(*svma - fde_.start_svma) : After::kBad;
    }
    case DW_CFA_advance_loc1:
      return advance(take_delta<std::uint8_t>(in));
    case DW_CFA_advance_loc2:
      return advance(take_delta<std::uint16_t>(in));
    case DW_CFA_advance_loc4:
      return advance(take_delta<std::uint32_t>(in));
    case DW_CFA_remember_state:
      return remember_state();
    case DW_CFA_restore_state:
      return restore_state();
    case DW_CFA_restore_extended:
      return restore(read_uleb128(in));
    case DW_CFA_GNU_args_size:  // bytes that an exception handler would pop: not needed here
      return read_uleb128(in) ? After::kGoOn : After::kBad;
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_offset_sf:
    case DW_CFA_def_cfa_expression:
      return define_cfa(opcode, in);
    default:
      return define_register(opcode, in);
  }
}

CfiProgram::After CfiProgram::define_cfa(std::uint8_t opcode, AddressedReader& in) {
  CfaRule& cfa = current_.cfa;
  if (opcode == DW_CFA_def_cfa_expression) {
    const auto expression = take_block(in);
    if (!expression)
      return After::kBad;
    cfa = {.is_expression = true, .expression = *expression};
    return After::kGoOn;
  }
  if (opcode != DW_CFA_def_cfa_offset && opcode != DW_CFA_def_cfa_offset_sf) {
    const auto number = read_uleb128(in);
    if (!number)
      return After::kBad;
    cfa.register_number = *number;
    cfa.is_expression = false;
    if (opcode == DW_CFA_def_cfa_register)
      return After::kGoOn;
  }
  const bool is_factored = opcode == DW_CFA_def_cfa_sf || opcode == DW_CFA_def_cfa_offset_sf;
  if (is_factored) {
    const auto offset = read_sleb128(in);
    if (!offset)
      return After::kBad;
    cfa.offset = scaled(static_cast<std::uint64_t>(*offset), fde_.cie.data_alignment);
    return After::kGoOn;
  }
  const auto offset = read_uleb128(in);
  if (!offset)
    return After::kBad;
  cfa.offset = static_cast<std::int64_t>(*offset);
  return After::kGoOn;
}

CfiProgram::After CfiProgram::define_register(std::uint8_t opcode, AddressedReader& in) {
  const auto number = read_uleb128(in);
  if (!number)
    return After::kBad;
  std::optional<std::uint64_t> operand = 0;
  std::optional<Bytes> block = Bytes();
  RegisterRule rule;
  std::int64_t factor = fde_.cie.data_alignment;
  switch (opcode) {
    case DW_CFA_undefined:
      rule.kind = Kind::kUndefined;
      break;
    case DW_CFA_same_value:
      break;
    case DW_CFA_register:
      rule.kind = Kind::kRegister;
      operand = read_uleb128(in);
      factor = 1;
      break;
    case DW_CFA_offset_extended:
    case DW_CFA_GNU_negative_offset_extended:
      rule.kind = Kind::kOffset;
      operand = read_uleb128(in);
      factor = opcode == DW_CFA_offset_extended ? factor : scaled(-1ULL, factor);
      break;
    case DW_CFA_val_offset:
      rule.kind = Kind::kValueOffset;
      operand = read_uleb128(in);
      break;
    case DW_CFA_offset_extended_sf:
    case DW_CFA_val_offset_sf: {
      rule.kind = opcode == DW_CFA_val_offset_sf ? Kind::kValueOffset : Kind::kOffset;
      const auto offset = read_sleb128(in);
      operand = offset ? std::optional(static_cast<std::uint64_t>(*offset)) : std::nullopt;
      break;
    }
    case DW_CFA_expression:
    case DW_CFA_val_expression:
      rule.kind = opcode == DW_CFA_expression ? Kind::kExpression : Kind::kValue;
      block = take_block(in);
      break;
    default:
      return After::kBad;
  }
  if (!operand || !block)
    return After::kBad;
  rule.offset = scaled(*operand, factor);
  rule.expression = *block;
  return set_rule(*number, rule);
}

CfiProgram::After CfiProgram::advance(std::optional<std::uint64_t> delta) {
  std::uint64_t location = 0;
  if (!delta || __builtin_mul_overflow(*delta, fde_.cie.code_alignment, &location) ||
      __builtin_add_overflow(location, location_, &location))
    return After::kBad;
  return move_to(location);
}

CfiProgram::After CfiProgram::move_to(std::uint64_t location) {
  if (location < location_)
    return After::kBad;
  location_ = location;
  return After::kMoved;
}

/// Ignores vector registers, and others that no CFA depends on.
CfiProgram::After CfiProgram::set_rule(std::uint64_t number, const RegisterRule& rule) {
  if (number < current_.registers.size())
    current_.registers[number] = rule;
  return After::kGoOn;
}

CfiProgram::After CfiProgram::restore(std::optional<std::uint64_t> number) {
  if (!number)
    return After::kBad;
  return *number < initial_.registers.size() ? set_rule(*number, initial_.registers[*number])
                                             : After::kGoOn;
}

CfiProgram::After CfiProgram::remember_state() {
  if (room_.empty()) {
    own_room_.resize(kMaxRememberedStates);
    room_ = own_room_;
  }
  if (remembered_ == room_.size())
    return After::kBad;
  room_[remembered_++] = current_;
  return After::kGoOn;
}

CfiProgram::After CfiProgram::restore_state() {
  if (remembered_ == 0)
    return After::kBad;
  current_ = room_[--remembered_];
  return After::kGoOn;
}

}  // namespace pe::unwind
