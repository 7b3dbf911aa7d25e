// SPDX-License-Identifier: MIT
#include "record/runtime_code/java_rules.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "unwind/architecture.h"
#include "unwind/x86_64_instruction.h"

namespace pe::record {
namespace {

using unwind::Rule;
using unwind::RuleKind;

/// The caller's frame pointer is two words below the CFA.
constexpr std::uint32_t kSlot = 2;

constexpr Rule kNothingPushed(RuleKind::kStackPointer, 1, 0);
constexpr Rule kFramePointerPushed(RuleKind::kStackPointer, 2, kSlot);
constexpr Rule kByFramePointer(RuleKind::kFramePointer, 2, kSlot);
constexpr Rule kOfInterpreter(RuleKind::kRealigned, 1, 1);

bool starts_with(Bytes code, std::initializer_list<unsigned> bytes) {
  if (code.size() < bytes.size())
    return false;
  std::size_t at = 0;
  for (const unsigned byte : bytes)
    if (code[at++] != static_cast<std::byte>(byte))
      return false;
  return true;
}

/// `sub rsp, SIZE`.
struct Subtraction {
  std::size_t bytes = 0;  ///< of the instruction
  std::uint32_t size = 0;
};
std::optional<Subtraction> subtraction_at(Bytes code) {
  if (starts_with(code, {0x48, 0x83, 0xec}) && code.size() > 3)
    return Subtraction{4, std::to_integer<std::uint32_t>(code[3])};
  if (!starts_with(code, {0x48, 0x81, 0xec}) || code.size() < 7)
    return std::nullopt;
  Subtraction found{7, 0};
  std::memcpy(&found.size, code.data() + 3, sizeof found.size);
  return found;
}

/// Returns where `push rbp` is that the instruction at `at` follows; nullopt if it does not follow
/// one.  With -XX:+PreserveFramePointer, `mov rbp, rsp` is between the two.
std::optional<std::size_t> push_before(Bytes code, std::size_t at) {
  constexpr std::byte kPush{0x55};
  constexpr std::size_t kMoveBytes = 3;
  if (at > kMoveBytes && starts_with(code.subspan(at - kMoveBytes), {0x48, 0x8b, 0xec}))
    at -= kMoveBytes;
  return at > 0 && code[at - 1] == kPush ? std::optional(at - 1) : std::nullopt;
}

/// The rule in the code before the frame is complete.  The last instruction that makes room for a
/// frame of this size is that of the method's entry.
Rule rule_of_prologue(const runtimes::CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
  constexpr std::uint64_t kMostBytes = 256;
  constexpr std::uint64_t kWordBytes = unwind::architecture::kWordBytes;
  const std::uint64_t from =
      std::max(blob.code_start, blob.frame_complete - std::min(blob.frame_complete, kMostBytes));
  std::vector<std::byte> bytes(blob.frame_complete - from);
  if (avma < from || !read(from, bytes))
    return kNothingPushed;
  const Bytes code(bytes);
  const std::uint64_t here = avma - from;
  const std::uint64_t frame_bytes = kWordBytes * blob.frame_words;
  for (std::size_t at = code.size(); at-- > 0;) {
    const auto subtraction = subtraction_at(code.subspan(at));
    const auto push = subtraction ? push_before(code, at) : std::nullopt;
    if (push && subtraction->size + 2 * kWordBytes == frame_bytes) {
      const Rule then =
          here <= at ? kFramePointerPushed : Rule(RuleKind::kStackPointer, blob.frame_words, kSlot);
      return here <= *push ? kNothingPushed : then;
    }
    if (subtraction && subtraction->size + kWordBytes == frame_bytes)
      return here <= at ? kNothingPushed : Rule(RuleKind::kStackPointer, blob.frame_words);
  }
  return kNothingPushed;
}

/// The rule if the code from `avma` on only leaves its function; nullopt otherwise.
std::optional<Rule> rule_of_epilogue(Bytes code) {
  std::uint32_t popped = 0;
  while (!code.empty()) {
    std::size_t bytes = 0;
    if (starts_with(code, {0xc3}) || starts_with(code, {0xc2}))
      return popped != 0 ? kFramePointerPushed : kNothingPushed;
    if (starts_with(code, {0x5d}) && popped == 0) {  // pop rbp
      popped = 1;
      bytes = 1;
    } else if (starts_with(code, {0x49, 0x3b, 0x67})) {  // cmp rsp, [r15 + N]
      bytes = 4;
    } else if (starts_with(code, {0x49, 0x3b, 0xa7})) {
      bytes = 7;
    } else if (starts_with(code, {0x0f, 0x87})) {  // ja, to the safe point
      bytes = 6;
    } else if (starts_with(code, {0x77})) {
      bytes = 2;
    } else {
      return std::nullopt;
    }
    code = code.subspan(std::min(bytes, code.size()));
  }
  return std::nullopt;
}

/// Follows code from an instruction to where it leaves its function, and keeps track of the stack
/// pointer on the way.
class WayOut {
 public:
  explicit WayOut(Bytes code) : code_(code), seen_(code.size()) {}

  /// Returns the rule of the instruction at `at`; nullopt if no way out is found.
  std::optional<Rule> from(std::size_t at) {
    constexpr std::size_t kMostInstructions = 4000;
    std::vector<Path> paths{{.at = at}};
    for (std::size_t i = 0; i < kMostInstructions && !paths.empty(); ++i) {
      Path path = paths.back();
      paths.pop_back();
      if (path.at >= code_.size() || seen_[path.at])
        continue;
      seen_[path.at] = true;
      const Bytes rest = code_.subspan(path.at);
      const auto instruction = unwind::decode_x86_64(rest);
      if (!instruction)
        continue;
      using Flow = unwind::Instruction::Flow;
      if (instruction->flow == Flow::kReturn || instruction->flow == Flow::kIndirectJump)
        return path.rule();
      if (!path.follow(rest))
        return kByFramePointer;
      path.at += instruction->bytes;
      Path jumped = path;
      jumped.at += static_cast<std::size_t>(instruction->target);  // beyond the code if negative
      if (instruction->flow == Flow::kBranch || instruction->flow == Flow::kJump)
        paths.push_back(jumped);
      if (instruction->flow != Flow::kJump)
        paths.push_back(path);
    }
    return std::nullopt;
  }

 private:
  struct Path {
    std::size_t at = 0;
    std::int64_t popped_bytes = 0;            ///< since the start
    bool is_pushed = false;                   ///< rbp, on the way
    std::optional<std::int64_t> set_at = {};  ///< where rbp was set on the way
    std::optional<std::int64_t> restored_at =
        {};  ///< where rbp was popped that had been pushed before

    /// Applies an instruction; false if it restores the stack pointer from rbp, which was set
    /// before.
    bool follow(Bytes code) {
      if (starts_with(code, {0xc9})) {  // leave
        if (!set_at)
          return false;
        popped_bytes = *set_at;
        pop_frame_pointer();
      } else if (starts_with(code, {0x5d})) {  // pop rbp
        pop_frame_pointer();
      } else if (starts_with(code, {0x55})) {  // push rbp
        popped_bytes -= kWord;
        is_pushed = true;
      } else if (starts_with(code, {0x48, 0x8b, 0xec}) ||  // mov rbp, rsp
                 starts_with(code, {0x48, 0x89, 0xe5})) {
        set_at = popped_bytes;
      } else if (const auto change = words_popped(code)) {
        popped_bytes += kWord * *change;
      } else if (const auto subtraction = subtraction_at(code)) {
        popped_bytes -= subtraction->size;
      } else if (const auto addition = addition_at(code)) {
        popped_bytes += *addition;
      }
      return true;
    }

    void pop_frame_pointer() {
      if (!is_pushed)
        restored_at = popped_bytes;
      popped_bytes += kWord;
    }

    /// Returns 1 for a pop of another register, -1 for a push.
    static std::optional<int> words_popped(Bytes code) {
      if (starts_with(code, {0x41}))
        code = code.subspan(1);
      if (code.empty())
        return std::nullopt;
      constexpr unsigned kPush = 0x50, kPop = 0x58, kEnd = 0x60;
      const auto byte = std::to_integer<unsigned>(code.front());
      if (byte < kPush || byte >= kEnd)
        return std::nullopt;
      return byte < kPop ? -1 : 1;
    }

    /// Returns the number that `add rsp, N` adds.
    static std::optional<std::int64_t> addition_at(Bytes code) {
      if (starts_with(code, {0x48, 0x83, 0xc4}) && code.size() > 3)
        return std::to_integer<std::int64_t>(code[3]);
      if (!starts_with(code, {0x48, 0x81, 0xc4}) || code.size() < 7)
        return std::nullopt;
      std::int32_t size = 0;
      std::memcpy(&size, code.data() + 3, sizeof size);
      return size;
    }

    [[nodiscard]] std::optional<Rule> rule() const {
      if (restored_at && (*restored_at < 0 || *restored_at > popped_bytes))
        return std::nullopt;
      if (popped_bytes < 0 || popped_bytes % kWord != 0 || popped_bytes / kWord >= Rule::kMaxSlot)
        return std::nullopt;
      const auto words = static_cast<std::uint32_t>(popped_bytes / kWord) + 1;
      const auto slot = restored_at ? words - static_cast<std::uint32_t>(*restored_at / kWord) : 0U;
      return Rule(RuleKind::kStackPointer, words, slot);
    }

    static constexpr std::int64_t kWord = 8;
  };

  Bytes code_;
  std::vector<bool> seen_;
};

/// The rule of a stub, whose frame has no known size.
Rule rule_of_stub(const runtimes::CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
  constexpr std::uint64_t kMostBytes = 8192, kMostBefore = 256;
  const std::uint64_t from = std::max(blob.code_start, avma - std::min(avma, kMostBefore));
  std::vector<std::byte> code(std::min(blob.code_end - from, kMostBytes));
  if (!read(from, code))
    return kByFramePointer;
  return WayOut(code).from(avma - from).value_or(kByFramePointer);
}

}  // namespace

Rule java_rule(const runtimes::CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
  constexpr std::size_t kEpilogueBytes = 24;
  if (blob.kind == runtimes::CodeBlob::Kind::kInterpreter)
    return kOfInterpreter;
  if (blob.frame_words == 0)
    return rule_of_stub(blob, avma, read);
  if (avma < blob.frame_complete)
    return rule_of_prologue(blob, avma, read);
  std::array<std::byte, kEpilogueBytes> code{};
  const auto rest =
      std::span(code).first(std::min<std::uint64_t>(kEpilogueBytes, blob.code_end - avma));
  if (read(avma, rest))
    if (const auto rule = rule_of_epilogue(rest))
      return *rule;
  return Rule(RuleKind::kStackPointer, blob.frame_words, blob.frame_words > 1 ? kSlot : 0);
}

}  // namespace pe::record
