// SPDX-License-Identifier: MIT
#include "languages/node/v8_rules.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "base/byte_reader.h"
#include "unwind/x86_64_instruction.h"

namespace pe::languages {
namespace {

using unwind::Rule;
using unwind::RuleKind;

constexpr Rule kBeforeV8Frame(RuleKind::kStackPointer, 1, 0);
constexpr Rule kPushedV8Frame(RuleKind::kStackPointer, 2, 2);
constexpr Rule kInV8Frame(RuleKind::kFramePointer, 2, 2);

template <std::size_t N>
std::size_t find_bytes(Bytes code, const std::array<std::uint8_t, N>& wanted) {
  const auto found = std::search(code.begin(), code.end(), wanted.begin(), wanted.end(),
                                 [](std::byte byte, std::uint8_t other) {
                                   return std::to_integer<std::uint8_t>(byte) == other;
                                 });
  return static_cast<std::size_t>(found - code.begin());
}

/// Whether the first call is at or after byte `at`.  The code of the baseline compiler calls a
/// builtin that makes its frame.
bool is_before_call(Bytes code, std::size_t at) {
  constexpr std::byte kCall{0xe8}, kIndirectCall{0xff};
  for (std::size_t here = 0; here < code.size();) {
    if (here >= at)
      return here == at;
    const auto instruction = unwind::decode_x86_64(code.subspan(here));
    if (!instruction || instruction->bytes == 0 || code[here] == kCall ||
        code[here] == kIndirectCall)
      return false;
    here += instruction->bytes;
  }
  return false;
}

/// Whether `code` starts after a frame was removed, and leaves the function at or after its byte
/// `at`.
bool leaves_at(Bytes code, std::size_t at) {
  using Flow = unwind::Instruction::Flow;
  for (std::size_t here = 0; here <= at;) {
    if (here == at)
      return true;
    const auto instruction = unwind::decode_x86_64(code.subspan(here));
    if (!instruction || instruction->bytes == 0 || instruction->flow == Flow::kReturn)
      return false;
    here += instruction->bytes;
  }
  return false;
}

/// Returns the rule if the code's frame is not complete yet.
std::optional<Rule> rule_of_start(const V8CodeFields& code, std::uint64_t avma,
                                  const ReadCode& read) {
  constexpr std::uint64_t kMostBytes = 68;
  std::array<std::byte, kMostBytes> bytes{};
  const auto first =
      std::span(bytes).first(static_cast<std::size_t>(std::min(kMostBytes, code.end - code.start)));
  const std::uint64_t at = avma - code.start;
  if (at >= first.size() || !read(code.start, first))
    return std::nullopt;
  const std::size_t push =
      std::min(find_bytes(first, std::array<std::uint8_t, 4>{0x55, 0x48, 0x89, 0xe5}),
               find_bytes(first, std::array<std::uint8_t, 4>{0x55, 0x48, 0x8b, 0xec}));
  if (push == first.size())
    return code.kind == V8CodeFields::Kind::kBaseline && is_before_call(first, at)
               ? std::optional(kBeforeV8Frame)
               : std::nullopt;
  if (at == push + 1)
    return kPushedV8Frame;
  return at <= push ? std::optional(kBeforeV8Frame) : std::nullopt;
}

/// Whether the frame has been removed at byte `here`.
bool is_after_frame(Bytes code, std::size_t here) {
  for (const auto& removal : {std::array<std::uint8_t, 4>{0x48, 0x8b, 0xe5, 0x5d},
                              std::array<std::uint8_t, 4>{0x48, 0x89, 0xec, 0x5d}}) {
    Bytes rest = code;
    std::size_t passed = 0;
    for (std::size_t at = find_bytes(rest, removal); at < rest.size();
         at = find_bytes(rest, removal)) {
      passed += at + removal.size();
      rest = rest.subspan(at + removal.size());
      if (here >= passed && leaves_at(rest, here - passed))
        return true;
    }
  }
  return false;
}

}  // namespace

Rule v8_rule(const V8CodeFields& code, std::uint64_t avma, const ReadCode& read) {
  constexpr std::uint64_t kMostBefore = 40, kMostBytes = 56;
  if (avma < code.start || avma >= code.end)
    return kInV8Frame;
  if (const auto rule = rule_of_start(code, avma, read))
    return *rule;
  std::array<std::byte, kMostBytes> around{};
  const std::uint64_t from = std::max(code.start, avma - std::min(avma, kMostBefore));
  const auto bytes =
      std::span(around).first(static_cast<std::size_t>(std::min(kMostBytes, code.end - from)));
  return read(from, bytes) && is_after_frame(bytes, avma - from) ? kBeforeV8Frame : kInV8Frame;
}

}  // namespace pe::languages
