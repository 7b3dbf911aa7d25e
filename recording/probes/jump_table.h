// Finds the jump tables of switch statements, as gcc and clang write them for x86-64:
//
//     lea    TABLE(%rip), %base             position independent: the entries are of four bytes,
//     movslq (%base, %index, 4), %entry     and count from the table
//     add    %base, %entry
//     jmp    *%entry
//
//     jmp    *TABLE(, %index, 8)            the entries are addresses; also by mov and jmp *%entry,
//     jmp    *(%base, %index, 8)            or with the table's address in a register
//
// The number of entries is that of a comparison before the jump: `cmp $LAST, ...`, `ja DEFAULT`.
// This is a heuristic: the caller must check each entry.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "objects/image.h"
#include "recording/probes/decoded_code.h"

namespace pe::unwind {

struct JumpTable {
  std::uint64_t svma = 0;
  bool is_relative = false;
  /// 0: not known.
  std::uint64_t entries = 0;
};

/// The addresses that instructions of the code load into each register, the first ones.
class AddressLoads {
 public:
  explicit AddressLoads(const DecodedCode& code);
  [[nodiscard]] const std::vector<std::uint64_t>& into(unsigned reg) const {
    return of_register_[reg % kRegisters];
  }

 private:
  static constexpr std::size_t kRegisters = 16;
  std::array<std::vector<std::uint64_t>, kRegisters> of_register_;
};

/// Returns the tables from which the indirect jump `number` of the code may take its targets: more
/// than one if it is not clear which address its register holds.
std::vector<JumpTable> tables_of_jump(const DecodedCode& code, const AddressLoads& loads,
                                      std::size_t number);

/// Returns where the entries of a table lead, at most `most` of them; none if the file does not
/// have it, or has a relative one in memory that the program may write, where no compiler puts it.
/// Addresses are as in the file: those that the dynamic linker would fill in are 0.
std::vector<std::uint64_t> read_jump_table(const objects::Image& image, const JumpTable& table,
                                           std::size_t most);

}  // namespace pe::unwind
