// The instructions of one function that are shown to be code.
//
// A probe on data, or inside of an instruction, changes what a program does.  Bytes between the
// instructions of a function may be data, so an instruction counts only if it is reached: from an
// address where code is known to start, along the instructions that follow, direct jumps, and jump
// tables (jump_table.h) of which each entry leads to an instruction.  The handlers of exceptions
// (landing_pads.h) are also known.  Code that only another indirect jump reaches is not known.
//
// The file is untrusted.  It can state that code starts where none does, and can jump around data
// in ways that nobody can see; it then damages only those who run it.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "recording/probes/decoded_code.h"
#include "recording/probes/jump_table.h"
#include "unwind/function_ranges.h"

namespace pe::unwind {

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
