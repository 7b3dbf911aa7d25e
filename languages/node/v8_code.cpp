// SPDX-License-Identifier: MIT
#include "languages/node/v8_code.h"

#include <utility>

#include "languages/node/v8_rules.h"
#include "unwind/architecture.h"

namespace pe::languages {
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

bool V8Code::may_have(std::string_view path) const { return stream::may_be_node(path); }

std::optional<V8Binary> V8Code::find(const objects::Image& image) const { return find_v8(image); }

std::variant<V8Process, std::string> V8Code::open(Memory memory, const V8Binary& binary,
                                                  const stream::Mapping& /*mapping*/) {
  if (!binary.layout)
    return binary.unknown;
  return V8Process(std::move(memory), *binary.layout);
}

/// `is_before_return`: it is the byte before a return address.
V8Code::Place V8Code::place_of(std::uint32_t pid, const Process& process, std::uint64_t avma,
                               bool is_before_return) {
  Place place{.mapping = history_->processes().find(pid, avma)};
  if (place.mapping == nullptr || place.mapping->file != process.library.file)
    return place;
  const V8Binary* const binary = examine(pid, process.library);
  const auto svma = binary != nullptr ? objects::svma_of_code_mapping(binary->segments,
                                                                      place.mapping->file_offset)
                                      : std::nullopt;
  if (!svma)
    return place;
  const std::uint64_t here = *svma + (avma - place.mapping->start);
  place.builtin = is_before_return ? binary->builtin_of_return(here + 1) : binary->builtin_at(here);
  return place;
}

std::optional<unwind::Rule> V8Code::rule(std::uint32_t pid, std::uint64_t avma) {
  Process* const process = opened(pid);
  if (process == nullptr)
    return std::nullopt;
  const Place place = place_of(pid, *process, avma);
  const auto* const code =
      place.is_compiled() ? process->machine->code_at(avma, place.mapping->start) : nullptr;
  if (code == nullptr)
    return std::nullopt;
  return v8_rule(*code, avma, [process](std::uint64_t from, std::span<std::byte> into) {
    return process->machine->read_code(from, into);
  });
}

bool V8Code::are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) {
  Process* const process = known(pid);
  if (process == nullptr)
    return false;
  for (const unwind::Frame frame : frames) {
    const std::uint64_t at = frame.address() - (frame.is_exact() ? 0 : 1);
    if (const Place place = place_of(pid, *process, at); place.is_compiled())
      process->machine->code_at(at, place.mapping->start);
  }
  return process->machine->take_changed();
}

void V8Code::add_interpreted(const Replaced& replaced, const V8Frame& frame) {
  ++frames_;
  has_read_ = true;
  const std::uint32_t pid = replaced.pid;
  const auto address = replaced.process.machine->interpreted(
      frame, [this, pid](const auto& function) { return number_of(pid, function); });
  replaced.addresses.push_back(address ? *address : unreadable(pid, ScriptKind::kNode));
}

/// `at` is an instruction, or the byte before a return address, in the mapping from `lowest` on.
void V8Code::add_compiled(const Replaced& replaced, std::uint64_t at, std::uint64_t lowest) {
  ++frames_;
  const std::uint32_t pid = replaced.pid;
  V8Process& machine = *replaced.process.machine;
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
  if (!replaced.process.machine->is_of_script(frame))
    return false;
  const auto returns_to = replaced.stack.read(state.sp);
  const Place caller =
      returns_to ? place_of(replaced.pid, replaced.process, *returns_to - 1) : Place{};
  replaced.addresses.push_back(fp_frame.address());
  const auto* const code = caller.is_compiled() ? replaced.process.machine->code_at(
                                                      *returns_to - 1, caller.mapping->start)
                                                : nullptr;
  // A function that has just started calls builtins before it has a frame.
  if (code != nullptr && replaced.process.machine->is_frame_of(*code, frame))
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
  if (!words || !replaced.process.machine->is_interpreted(*words)) {
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
