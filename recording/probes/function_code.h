// The instructions of one function that are shown to be code.
//
// A probe on data, or inside of an instruction, changes what a program does.  Bytes between the
// instructions of a function may be data, so an instruction counts only if it is reached: from an
// address where code is known to start, along the instructions that follow, direct jumps, and jump
// tables of which each entry leads to an instruction.  The handlers of exceptions
// (source_places.h) are also known.  Code that only another indirect jump reaches is not known.
//
// The file is untrusted.  It can state that code starts where none does, and can jump around data
// in ways that nobody can see; it then damages only those who run it.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "objects/image.h"
#include "unwind/function_ranges.h"
#include "unwind/x86_64_instruction.h"

namespace pe::unwind {

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

// The instructions of a range of x86-64 code, decoded one after the other from its start.
//
// Data may be between instructions, so decoding alone does not show that bytes are code:
// FunctionCode finds that.

class DecodedCode {
 public:
  struct Step {
    std::uint64_t svma;
    std::uint64_t target;  ///< svma, of jumps and branches
    std::uint8_t bytes;
    Instruction::Flow flow;
  };

  /// Decodes [start, end) as the file has it where a probe on that code would be: in a segment that
  /// is executable.  nullopt if some bytes are no instruction, the last one is cut off, or the
  /// range has more than kMostBytes.
  static std::optional<DecodedCode> read(const objects::Image& image, std::uint64_t start,
                                         std::uint64_t end);

  /// The instructions; their addresses rise.
  [[nodiscard]] const std::vector<Step>& steps() const noexcept { return steps_; }
  [[nodiscard]] Bytes bytes_of(const Step& step) const noexcept;
  /// Returns the number of the instruction that has a byte at `svma`; nullopt outside of the range.
  [[nodiscard]] std::optional<std::size_t> number_at(std::uint64_t svma) const noexcept;
  /// Does the range have the address?
  [[nodiscard]] bool covers(std::uint64_t svma) const noexcept {
    return svma - start_ < bytes_.size();
  }
  [[nodiscard]] std::uint64_t start_svma() const noexcept { return start_; }

  static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;

 private:
  std::uint64_t start_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<Step> steps_;
};

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

class FunctionCode {
 public:
  /// Decodes the function; nothing but the handlers of its exceptions is reached yet.  `image` and
  /// its `ranges` must outlive this.  nullopt if its bytes are not only instructions.
  static std::optional<FunctionCode> read(const objects::Image& image, const FunctionRanges& ranges,
                                          const FunctionRanges::Range& range);

  /// Adds the code that is reached from `svma`, which is in the function.  False if a jump leads
  /// into the middle of an instruction, now or before.
  bool follow(std::uint64_t svma);

  [[nodiscard]] const DecodedCode& code() const noexcept { return code_; }
  /// Is the instruction of that number reached?
  [[nodiscard]] bool is_reached(std::size_t number) const { return is_reached_[number]; }
  /// Has the indirect jump of that number a jump table?
  [[nodiscard]] bool has_table(std::size_t number) const { return has_table_[number]; }
  /// Where entries of jump tables lead to other functions, or to parts that the compiler has moved
  /// away; several may be the same.
  [[nodiscard]] const std::vector<std::uint64_t>& far_entries() const noexcept {
    return far_entries_;
  }
  /// Returns the targets of jumps to other code that follow() has found since the last call.
  std::vector<std::uint64_t> take_leaving() { return std::exchange(leaving_, {}); }

 private:
  FunctionCode(const objects::Image& image, const FunctionRanges& ranges, DecodedCode code);
  bool run();
  void add(std::uint64_t svma);
  void follow_table(std::size_t jump);
  bool accept(const JumpTable& table);
  [[nodiscard]] bool may_be_far_entry(const JumpTable& table, std::uint64_t target,
                                      bool is_counted) const;

  const objects::Image* image_;
  const FunctionRanges* ranges_;
  DecodedCode code_;
  std::vector<bool> is_reached_, has_table_;  ///< by the number of the instruction
  std::vector<std::size_t> left_;  ///< numbers of instructions that are reached, and not followed
  AddressLoads loads_;
  std::vector<std::uint64_t> far_entries_, leaving_;
  std::size_t tables_left_;   ///< how many may still be read,
  std::size_t entries_left_;  ///< and how many entries may still be accepted
  bool is_right_ = true;
};

}  // namespace pe::unwind
