// Runs the program of one FDE, and returns the rows of its virtual table one after the other.
//
// A row describes, for a range of code, how to compute the CFA and where the caller's registers
// are.  An unknown or invalid instruction ends the table; the rows before it are valid.
//
// Source: DWARF 5, 6.4.1 to 6.4.3; DW_CFA_GNU_* from binutils' and gcc's use.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/byte_reader.h"
#include "unwind/architecture.h"
#include "unwind/cfi/cfi_entries.h"

namespace pe::unwind {

/// Where the caller's value of a register is.
struct RegisterRule {
  enum class Kind : std::uint8_t {
    kSameValue,    ///< still in the register; also for registers that are not mentioned
    kUndefined,    ///< lost; for the return address: there is no caller
    kOffset,       ///< at CFA + offset
    kValueOffset,  ///< the value is CFA + offset
    kRegister,     ///< in register number `offset`
    kExpression,   ///< at the address that the expression gives
    kValue,        ///< the value is the result of the expression
  };
  Kind kind = Kind::kSameValue;
  std::int64_t offset = 0;
  Bytes expression;  ///< lives as long as the section
};

struct CfaRule {
  bool is_expression = false;
  std::uint64_t register_number = 0;
  std::int64_t offset = 0;
  Bytes expression;
};

struct CfiRow {
  CfaRule cfa;
  std::array<RegisterRule, architecture::kRegisterCount> registers;
};

class CfiProgram {
 public:
  /// DW_EH_PE_datarel counts from `data_svma`.  Borrows from the FDE's section.  If `room` is not
  /// empty, remembered states go to it and nothing is allocated.
  explicit CfiProgram(const Fde& fde, std::uint64_t data_svma = 0, std::span<CfiRow> room = {});

  /// Advances to the next row; false at the end of the table.  Skips rows without code.
  bool next();

  /// The row, and the range of code that it describes: [from, to), counted from the function's
  /// start.
  [[nodiscard]] const CfiRow& row() const noexcept { return current_; }
  [[nodiscard]] std::uint64_t from() const noexcept { return from_; }
  [[nodiscard]] std::uint64_t to() const noexcept { return to_; }

  /// Whether the table ended early, because an instruction could not be run.
  [[nodiscard]] bool is_damaged() const noexcept { return is_damaged_; }

  /// How deep DW_CFA_remember_state may nest; compilers use one level.
  static constexpr std::size_t kMaxRememberedStates = 64;

 private:
  enum class After : std::uint8_t { kGoOn, kMoved, kBad };

  After run_one(AddressedReader& in);
  After run_extended(std::uint8_t opcode, AddressedReader& in);
  After define_cfa(std::uint8_t opcode, AddressedReader& in);
  After define_register(std::uint8_t opcode, AddressedReader& in);
  After advance(std::optional<std::uint64_t> delta);
  After move_to(std::uint64_t location);
  After set_rule(std::uint64_t number, const RegisterRule& rule);
  After restore(std::optional<std::uint64_t> number);
  After remember_state();
  After restore_state();
  [[nodiscard]] bool run_initial_instructions();

  Fde fde_;
  std::uint64_t data_svma_;
  AddressedReader in_;
  CfiRow current_, initial_;
  std::span<CfiRow> room_;  ///< the caller's, or own_room_ once it is needed
  std::vector<CfiRow> own_room_;
  std::size_t remembered_ = 0;  ///< number of used rows of room_
  std::uint64_t location_ = 0;  ///< start of the code that the next instructions describe
  std::uint64_t from_ = 0, to_ = 0;
  bool is_damaged_, is_finished_;
};

}  // namespace pe::unwind
