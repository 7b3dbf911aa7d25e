// SPDX-License-Identifier: MIT
#include "languages/node/walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "base/byte_reader.h"
#include "unwind/architecture.h"
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

namespace {

using stream::ScriptKind;

/// The words of a frame, relative to where its frame pointer points.  Source: V8,
/// src/execution/frame-constants.h, as in the variables v8dbg_off_fp_*.
constexpr int kContextWord = -1, kFunctionWord = -2, kBytecodesWord = -4, kOffsetWord = -5;
/// The register in which the interpreter has the offset of the bytecode.
constexpr unsigned kOffsetRegister = 9;

std::optional<std::uint64_t> word_of(const unwind::StackView& stack, std::uint64_t fp, int words) {
  return fp != 0 ? stack.read(fp + unwind::architecture::kWordBytes *
                                       static_cast<std::uint64_t>(std::int64_t{words}))
                 : std::nullopt;
}

/// Returns the words of a frame of JavaScript; nullopt if the frame is of another kind.  Such a
/// frame has a small integer in place of the context.
std::optional<V8Frame> frame_at(const unwind::StackView& stack, std::uint64_t fp) {
  const auto context = word_of(stack, fp, kContextWord);
  const auto function = word_of(stack, fp, kFunctionWord);
  if (!context || !function || (*context & 3U) != 1 || (*function & 3U) != 1)
    return std::nullopt;
  return V8Frame{*function, word_of(stack, fp, kBytecodesWord).value_or(1),
                 word_of(stack, fp, kOffsetWord).value_or(1)};
}

}  // namespace

V8Code::FoundBinary V8Code::find(const objects::Image& image, bool /*has_name*/) {
  auto binary = find_v8(image);
  return binary ? std::make_shared<const V8Binary>(*std::move(binary)) : nullptr;
}

std::string V8Code::advice(const V8Binary& /*binary*/) const {
  std::string any_of(kNode.versions);
  any_of.replace(any_of.rfind(" and "), std::string_view(" and ").size(), " or ");
  return fmt::format("{}, or use Node {} with symbols, as from nodejs.org", kNode.own_names,
                     any_of);
}

std::variant<V8Process, std::string> V8Code::open_machine(Memory memory, const V8Binary& binary,
                                                          const stream::Mapping& /*mapping*/) {
  if (!binary.layout)
    return binary.unknown;
  return V8Process(std::move(memory), *binary.layout);
}

/// `is_before_return`: it is the byte before a return address.
V8Code::Place V8Code::place_of(std::uint32_t pid, const Process& process, std::uint64_t avma,
                               bool is_before_return) {
  Place place{.mapping = history_->processes().find(pid, avma)};
  if (place.mapping == nullptr || place.mapping->file != process.mapping.file)
    return place;
  const V8Binary& binary = *process.binary;
  const auto svma = objects::svma_of_code_mapping(binary.segments, place.mapping->file_offset);
  if (!svma)
    return place;
  const std::uint64_t here = *svma + (avma - place.mapping->start);
  place.builtin = is_before_return ? binary.builtin_of_return(here + 1) : binary.builtin_at(here);
  return place;
}

std::optional<unwind::Rule> V8Code::rule(std::uint32_t pid, std::uint64_t avma) {
  Process* const process = opened(pid);
  if (process == nullptr)
    return std::nullopt;
  const Place place = place_of(pid, *process, avma);
  const auto* const code =
      place.is_compiled() ? process->opened->machine.code_at(avma, place.mapping->start) : nullptr;
  if (code == nullptr)
    return std::nullopt;
  return v8_rule(*code, avma, [process](std::uint64_t from, std::span<std::byte> into) {
    return process->opened->machine.read_code(from, into);
  });
}

bool V8Code::are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) {
  Process* const process = known(pid);
  if (process == nullptr)
    return false;
  for (const unwind::Frame frame : frames) {
    const std::uint64_t at = frame.address() - (frame.is_exact() ? 0 : 1);
    if (const Place place = place_of(pid, *process, at); place.is_compiled())
      process->opened->machine.code_at(at, place.mapping->start);
  }
  return process->opened->machine.take_changed();
}

void V8Code::add_interpreted(const Replaced& replaced, const V8Frame& frame) {
  ++frames_;
  has_read_ = true;
  const std::uint32_t pid = replaced.pid;
  const auto address = replaced.process.opened->machine.interpreted(
      frame, [this, pid](const auto& function) { return number_of(pid, function); });
  replaced.addresses.push_back(address ? *address : unreadable(pid, ScriptKind::kNode));
}

/// `at` is an instruction, or the byte before a return address, in the mapping from `lowest` on.
void V8Code::add_compiled(const Replaced& replaced, std::uint64_t at, std::uint64_t lowest) {
  ++frames_;
  const std::uint32_t pid = replaced.pid;
  V8Process& machine = replaced.process.opened->machine;
  const auto* const code = machine.code_at(at, lowest);
  if (code == nullptr) {
    replaced.addresses.push_back(unreadable(pid, ScriptKind::kNode));
    return;
  }
  const V8Frame frame = frame_at(replaced.stack, replaced.walked.state.fp).value_or(V8Frame{});
  // With --interpreted-frames-native-stack, each function has a copy of the interpreter's builtin.
  if (code->kind == V8CodeFields::Kind::kOther && machine.is_interpreted(frame)) {
    --frames_;
    return add_interpreted(replaced, frame);
  }
  for (const std::uint64_t address :
       machine.functions_at(*code, at, frame,
                            [this, pid](const auto& function) { return number_of(pid, function); }))
    replaced.addresses.push_back(address != 0 ? address : unreadable(pid, ScriptKind::kNode));
}

/// An innermost builtin without a frame: the frame is its caller's, `frame`.  Returns false if it
/// is not.
bool V8Code::add_caller_of_leaf(const Replaced& replaced, const V8Frame& frame) {
  const auto& [fp_frame, state, registers] = replaced.walked;
  if (!replaced.process.opened->machine.is_of_script(frame))
    return false;
  const auto returns_to = replaced.stack.read(state.sp);
  const Place caller =
      returns_to ? place_of(replaced.pid, replaced.process, *returns_to - 1) : Place{};
  replaced.addresses.push_back(fp_frame.address());
  const auto* const code = caller.is_compiled() ? replaced.process.opened->machine.code_at(
                                                      *returns_to - 1, caller.mapping->start)
                                                : nullptr;
  // A function that has just started calls builtins before it has a frame.
  if (code != nullptr && replaced.process.opened->machine.is_frame_of(*code, frame))
    add_compiled(replaced, *returns_to - 1, caller.mapping->start);
  else
    add_interpreted(replaced, frame);
  return true;
}

bool V8Code::add_builtin(const Replaced& replaced, V8Binary::Builtin builtin) {
  const auto& [frame, state, registers] = replaced.walked;
  auto words = frame_at(replaced.stack, state.fp);
  if (builtin == V8Binary::Builtin::kOther)
    return frame.is_exact() && words && add_caller_of_leaf(replaced, *words);
  if (!words || !replaced.process.opened->machine.is_interpreted(*words)) {
    if (builtin == V8Binary::Builtin::kHandler && !frame.is_exact())
      return true;  // its frame is left out: the function's own one follows
    return frame.is_exact() && words && add_caller_of_leaf(replaced, *words);
  }
  if (const auto current = registers != nullptr && builtin == V8Binary::Builtin::kHandler
                               ? registers->get(kOffsetRegister)
                               : std::nullopt)
    words->bytecode_offset = *current << 32U;
  add_interpreted(replaced, *words);
  return true;
}

bool V8Code::functions(std::uint32_t pid, const WalkedFrame& walked, const unwind::StackView& stack,
                       std::vector<std::uint64_t>& addresses) {
  Process* const process = opened(pid);
  if (process == nullptr)
    return false;
  const std::uint64_t at = walked.frame.address() - (walked.frame.is_exact() ? 0 : 1);
  const Place place = place_of(pid, *process, at, !walked.frame.is_exact());
  const Replaced replaced{pid, *process, walked, stack, addresses};
  if (place.is_compiled()) {
    add_compiled(replaced, at, place.mapping->start);
    return true;
  }
  return place.builtin && add_builtin(replaced, *place.builtin);
}

}  // namespace pe::languages
