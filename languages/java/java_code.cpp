// SPDX-License-Identifier: MIT
#include "languages/java/java_code.h"

#include <utility>

#include "languages/java/java_rules.h"
#include "stream/script_mapping.h"

namespace pe::languages {
namespace {

/// The registers in which the interpreter has the address of the bytecode, and at the start of a
/// method the method.
constexpr unsigned kBytecodeRegister = 13, kMethodRegister = 3;

}  // namespace

bool JavaCode::may_have(std::string_view path) const { return stream::is_jvm(path); }

std::optional<JavaBinary> JavaCode::find(const objects::Image& image) const {
  return JavaBinary{find_hotspot(image), {image.segments().begin(), image.segments().end()}};
}

std::variant<HotspotProcess, std::string> JavaCode::open(Memory memory, const JavaBinary& binary,
                                                         const stream::Mapping& mapping) {
  const auto svma = objects::svma_of_code_mapping(binary.segments, mapping.file_offset);
  if (!binary.hotspot || !svma)
    return "a Java without descriptions of its structures";
  return HotspotProcess::open(std::move(memory), *binary.hotspot, mapping.start - *svma);
}

std::optional<unwind::Rule> JavaCode::rule(std::uint32_t pid, std::uint64_t avma) {
  // A JVM that runs code without a file has finished its start, and its tables are complete.
  Process* const process = opened(pid);
  HotspotProcess* const jvm = process != nullptr ? &*process->machine : nullptr;
  const CodeBlob* const blob = jvm != nullptr ? jvm->code_at(avma) : nullptr;
  if (blob == nullptr)
    return std::nullopt;
  if (jvm->is_call_stub_return(avma + 1))
    return unwind::Rule(unwind::RuleKind::kFramePointer, 2, 2);
  if (const std::uint32_t words = jvm->is_return_barrier(avma + 1) ? jvm->continuation_words() : 0;
      words != 0)
    return unwind::Rule(unwind::RuleKind::kStackPointer, words, 2);
  return java_rule(*blob, avma, [jvm](std::uint64_t from, std::span<std::byte> into) {
    return jvm->read_code(from, into);
  });
}

bool JavaCode::are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) {
  Process* const process = known(pid);
  if (process == nullptr)
    return false;
  HotspotProcess* const jvm = &*process->machine;
  for (const unwind::Frame frame : frames)
    if (jvm->has_code_at(frame.address() - (frame.is_exact() ? 0 : 1)))
      jvm->code_at(frame.address() - (frame.is_exact() ? 0 : 1));
  return jvm->take_changed();
}

/// Returns the function of a frame of the interpreter.  Only a stack's first frame may have its
/// bytecode's address in a register.
std::optional<std::uint64_t> JavaCode::interpreted(std::uint32_t pid, HotspotProcess& jvm,
                                                   const WalkedFrame& walked,
                                                   const unwind::StackView& stack) {
  const unwind::FrameState& state = walked.state;
  const unwind::architecture::Registers* const registers = walked.registers;
  const auto word_at = [&](std::int32_t words) {
    return stack.read(state.fp +
                      unwind::architecture::kWordBytes * static_cast<std::uint64_t>(words));
  };
  const auto current = registers != nullptr ? registers->get(kBytecodeRegister) : std::nullopt;
  auto method = word_at(jvm.layout().frame_method);
  if (!method && registers != nullptr)  // its frame is not complete
    method = registers->get(kMethodRegister);
  if (state.fp == 0 || !method)
    return std::nullopt;
  const bool is_current = current && jvm.is_bytecode_of(*method, *current);
  return jvm.interpreted(*method,
                         is_current ? *current : word_at(jvm.layout().frame_bytecode).value_or(0),
                         [&](const auto& function) { return number_of(pid, function); });
}

bool JavaCode::functions(std::uint32_t pid, const WalkedFrame& walked,
                         const unwind::StackView& stack, std::vector<std::uint64_t>& addresses) {
  const unwind::Frame frame = walked.frame;
  Process* const process = unchanged(pid);
  if (process == nullptr)
    return false;
  HotspotProcess& jvm = *process->machine;
  std::uint64_t avma = frame.address();
  const std::uint64_t at = avma - (frame.is_exact() ? 0 : 1);
  if (!jvm.has_code_at(at))
    return false;
  if (!frame.is_exact() && jvm.is_return_barrier(avma)) {
    addresses.push_back(stand_in(pid, "[java: callers in the heap]", stream::ScriptKind::kJava));
    return true;
  }
  const CodeBlob* const blob = jvm.code_at(at);
  ++frames_;
  if (blob == nullptr) {
    addresses.push_back(unreadable(pid, stream::ScriptKind::kJava));
    return true;
  }
  if (blob->kind == CodeBlob::Kind::kInterpreter) {
    const auto address = interpreted(pid, jvm, walked, stack);
    addresses.push_back(address ? *address : unreadable(pid, stream::ScriptKind::kJava));
    return true;
  }
  if (!frame.is_exact() && blob->deopt_handler != 0 && avma == blob->deopt_handler)
    avma = stack.read(walked.state.sp + blob->original_pc).value_or(avma);
  for (const std::uint64_t address : jvm.functions_at(
           *blob, avma, [&](const auto& function) { return number_of(pid, function); }))
    addresses.push_back(address != 0 ? address : unreadable(pid, stream::ScriptKind::kJava));
  return true;
}

}  // namespace pe::languages
