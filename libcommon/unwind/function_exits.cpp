// SPDX-License-Identifier: MIT
#include "unwind/function_exits.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "unwind/function_ranges.h"
#include "unwind/x86_64_instruction.h"

namespace pe::unwind {
namespace {

using Flow = Instruction::Flow;
using Range = FunctionRanges::Range;

/// Limits of what is followed, as one probe costs a descriptor on each CPU.
constexpr std::size_t kMostFunctions = 64, kMostExits = 500, kMostBytes = std::size_t{1} << 20U;

/// The jumps and returns of a function.
struct Code {
  struct Jump {
    std::uint64_t svma, target;
    bool is_conditional;
  };
  std::vector<std::uint64_t> returns;
  std::vector<Jump> leaving;            ///< to other code; a conditional one that cannot be
                                        ///< followed is no exit, as it may continue here
  std::vector<std::uint64_t> indirect;  ///< jumps without a stack frame, to a function
  bool has_indirect_jumps = false;      ///< these, or others: by a table, or to a function
  bool runs_over_end = false;           ///< the last instruction may be followed by another
};

/// Does the instruction remove a part of the stack frame: pop, leave, or add to rsp?
bool removes_frame(Bytes instruction) {
  const auto byte = [&](std::size_t i) {
    return i < instruction.size() ? std::to_integer<unsigned>(instruction[i]) : 0;
  };
  const std::size_t first = byte(0) == 0x41 ? 1 : 0;
  const bool is_pop = byte(first) >= 0x58 && byte(first) <= 0x5f;
  const bool is_add = byte(0) == 0x48 && (byte(1) == 0x83 || byte(1) == 0x81) && byte(2) == 0xc4;
  return is_pop || is_add || byte(0) == 0xc9;
}

/// Does the instruction make a stack frame: push, or subtract from rsp?
bool makes_frame(Bytes instruction) {
  const auto byte = [&](std::size_t i) {
    return i < instruction.size() ? std::to_integer<unsigned>(instruction[i]) : 0;
  };
  const std::size_t first = byte(0) == 0x41 ? 1 : 0;
  const bool is_push = byte(first) >= 0x50 && byte(first) <= 0x57;
  return is_push || (byte(0) == 0x48 && (byte(1) == 0x83 || byte(1) == 0x81) && byte(2) == 0xec);
}

/// May a function end with this instruction: a call of what never returns, a trap, or padding?
bool ends_code(Bytes instruction) {
  const auto byte = [&](std::size_t i) {
    return i < instruction.size() ? std::to_integer<unsigned>(instruction[i]) : 0;
  };
  const std::size_t at = (byte(0) & 0xf0U) == 0x40 ? 1 : 0;
  const bool is_indirect_call = byte(at) == 0xff && (byte(at + 1) & 0x38U) == 0x10;
  const bool is_trap = byte(0) == 0xcc || byte(0) == 0xf4 || (byte(0) == 0x0f && byte(1) == 0x0b);
  const bool is_padding =
      byte(0) == 0x90 || byte(0) == 0x66 || (byte(0) == 0x0f && byte(1) == 0x1f);
  return byte(0) == 0xe8 || is_indirect_call || is_trap || is_padding;
}

/// Does an indirect jump belong to a switch statement: `notrack jmp`, `jmp [TABLE + 8 * reg]`, or
/// `jmp reg` after an addition to the table's address?
bool is_by_table(Bytes before, Bytes jump) {
  const auto byte = [](Bytes bytes, std::size_t i) {
    return i < bytes.size() ? std::to_integer<unsigned>(bytes[i]) : 0;
  };
  if (byte(jump, 0) == 0x3e)
    return true;
  const std::size_t at = (byte(jump, 0) & 0xf0U) == 0x40 ? 1 : 0;
  const bool has_index =
      byte(jump, at) == 0xff && byte(jump, at + 1) == 0x24 && (byte(jump, at + 2) & 0xc0U) == 0xc0;
  const bool is_addition =
      (byte(before, 0) & 0xf8U) == 0x48 && (byte(before, 1) == 0x01 || byte(before, 1) == 0x03);
  return has_index || is_addition;
}

/// Decodes a function; nullopt if its bytes are not only instructions.
std::optional<Code> decode(Bytes bytes, const Range& range) {
  Code code;
  std::vector<bool> is_start(bytes.size());
  std::vector<std::uint64_t> inner;  // targets of jumps
  bool has_frame = false, frame_is_gone = false;
  Bytes before;
  Flow last_flow = Flow::kReturn;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto instruction = decode_x86_64(bytes.subspan(at));
    if (!instruction)
      return std::nullopt;
    const Bytes here = bytes.subspan(at, instruction->bytes);
    is_start[at] = true;
    const std::uint64_t svma = range.start_svma + at;
    const std::uint64_t target =
        svma + instruction->bytes + static_cast<std::uint64_t>(instruction->target);
    code.has_indirect_jumps |= instruction->flow == Flow::kIndirectJump;
    if (instruction->flow == Flow::kReturn)
      code.returns.push_back(svma);
    else if (instruction->flow == Flow::kIndirectJump &&
             (frame_is_gone || (!has_frame && !is_by_table(before, here))))
      code.indirect.push_back(svma);
    else if (instruction->flow == Flow::kJump || instruction->flow == Flow::kBranch) {
      if (range.covers(target) && target != range.start_svma)
        inner.push_back(target - range.start_svma);
      else
        code.leaving.push_back({svma, target, instruction->flow == Flow::kBranch});
    }
    frame_is_gone = removes_frame(here);
    has_frame = has_frame || makes_frame(here);
    before = here;
    last_flow = instruction->flow;
    at += instruction->bytes;
  }
  code.runs_over_end =
      last_flow == Flow::kBranch || (last_flow == Flow::kNext && !ends_code(before));
  const bool is_right = std::all_of(inner.begin(), inner.end(),
                                    [&](std::uint64_t target) { return is_start[target]; });
  return is_right ? std::optional(std::move(code)) : std::nullopt;
}

class ExitFinder {
 public:
  ExitFinder(const objects::Image& image, std::uint64_t svma)
      : image_(image), ranges_(image), start_(svma) {}

  FunctionExits find() {
    const auto range = ranges_.range_of(start_);
    if (!range || range->start_svma != start_)
      return {.svmas = {}, .problem = "no unwind information states where it ends"};
    const auto code = read(*range);
    if (!code)
      return {.svmas = {}, .problem = "its code cannot be decoded"};
    seen_.insert(start_);
    add(*code);
    const std::size_t own = exits_.svmas.size();
    bool has_indirect_jumps = code->has_indirect_jumps;
    while (!left_.empty()) {
      const Code next = std::move(left_.back());
      left_.pop_back();
      has_indirect_jumps |= next.has_indirect_jumps;
      add(next);
    }
    exits_.are_own = exits_.svmas.size() == own && exits_.jumps + exits_.unseen == 0 && own > 0 &&
                     !has_indirect_jumps;
    exits_.shared = exits_.svmas.size() - own;
    std::sort(exits_.svmas.begin(), exits_.svmas.end());
    if (exits_.svmas.size() > kMostExits)
      return {.svmas = {}, .problem = "it has too many exits"};
    return std::move(exits_);
  }

 private:
  std::optional<Code> read(const Range& range) const {
    const std::uint64_t size = range.end_svma - range.start_svma;
    if (size > kMostBytes || is_stub(range.start_svma))
      return std::nullopt;
    const auto bytes = image_.loaded_bytes(range.start_svma, size);
    return bytes && bytes->bytes.size() == size ? decode(bytes->bytes, range) : std::nullopt;
  }

  /// Is the address in a section of jumps to other files?
  [[nodiscard]] bool is_stub(std::uint64_t svma) const {
    const auto sections = image_.sections();
    return std::any_of(sections.begin(), sections.end(), [&](const objects::Section& section) {
      return section.covers(svma) && section.name.starts_with(".plt");
    });
  }

  void add(const Code& code) {
    exits_.svmas.insert(exits_.svmas.end(), code.returns.begin(), code.returns.end());
    for (const std::uint64_t jump : code.indirect)
      add_jump(jump);
    for (const Code::Jump& jump : code.leaving) {
      if (follow(jump.target))
        continue;
      if (jump.is_conditional)
        exits_.unseen += jump.target == start_ ? 0 : 1;
      else
        add_jump(jump.svma);
    }
    exits_.unseen += code.runs_over_end ? 1 : 0;
  }

  void add_jump(std::uint64_t svma) {
    exits_.svmas.push_back(svma);
    ++exits_.jumps;
  }

  /// Follows a jump to another function, or to a part that the compiler moved away.  Returns false
  /// if that is not possible; a jump to the start is the next call.
  bool follow(std::uint64_t target) {
    if (target == start_)
      return false;
    const auto range = ranges_.range_of(target);
    if (!range)
      return false;
    if (seen_.contains(range->start_svma))
      return true;
    auto code = seen_.size() < kMostFunctions && exits_.svmas.size() < kMostExits ? read(*range)
                                                                                  : std::nullopt;
    if (!code)
      return false;
    seen_.insert(range->start_svma);
    left_.push_back(std::move(*code));
    return true;
  }

  const objects::Image& image_;
  FunctionRanges ranges_;
  std::uint64_t start_;
  std::unordered_set<std::uint64_t> seen_;  ///< starts of functions
  std::vector<Code> left_;                  ///< of functions that are still to be added
  FunctionExits exits_;
};

}  // namespace

std::optional<std::uint64_t> instruction_start(const objects::Image& image, std::uint64_t function,
                                               std::uint64_t svma) {
  if (!image.is_x86_64() || svma < function || svma - function > kMostBytes)
    return std::nullopt;
  constexpr std::uint64_t kLongest = 15;
  auto code = image.loaded_bytes(function, svma - function + kLongest);
  if (!code)  // the last function
    code = image.loaded_bytes(function, svma - function + 1);
  if (!code)
    return std::nullopt;
  for (std::uint64_t at = function;;) {
    const auto instruction = decode_x86_64(Bytes(code->bytes).subspan(at - function));
    if (!instruction)
      return std::nullopt;
    if (at + instruction->bytes > svma)
      return at;
    at += instruction->bytes;
  }
}

FunctionExits find_exits(const objects::Image& image, std::uint64_t svma) {
  if (!image.is_x86_64())
    return {.svmas = {}, .problem = "its instructions are of another architecture"};
  return ExitFinder(image, svma).find();
}

}  // namespace pe::unwind
