// The instructions of a range of x86-64 code, decoded one after the other from its start.
//
// Data may be between instructions, so decoding alone does not show that bytes are code:
// FunctionCode finds that.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "objects/image.h"
#include "unwind/x86_64_instruction.h"

namespace pe::unwind {

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

}  // namespace pe::unwind
