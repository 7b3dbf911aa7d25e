// SPDX-License-Identifier: MIT
#include "languages/java/walk.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "stream/script_mapping.h"
#include "unwind/architecture.h"
#include "unwind/x86_64_instruction.h"

namespace pe::languages {
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
Rule rule_of_prologue(const CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
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

/// Returns how far an instruction moves the stack pointer up, in bytes: pushes, pops, additions and
/// subtractions; 0 for others.
std::int64_t bytes_popped(Bytes code) {
  constexpr std::int64_t kWord = unwind::architecture::kWordBytes;
  if (const auto subtraction = subtraction_at(code))
    return -std::int64_t{subtraction->size};
  if (starts_with(code, {0x48, 0x83, 0xc4}) && code.size() > 3)  // add rsp, N
    return std::to_integer<std::int8_t>(code[3]);
  if (starts_with(code, {0x48, 0x8d, 0x64, 0x24}) && code.size() > 4)  // lea rsp, [rsp + N]
    return std::to_integer<std::int8_t>(code[4]);
  for (const auto& wide : {std::initializer_list<unsigned>{0x48, 0x81, 0xc4},
                           std::initializer_list<unsigned>{0x48, 0x8d, 0xa4, 0x24}})
    if (starts_with(code, wide) && code.size() >= wide.size() + sizeof(std::int32_t)) {
      std::int32_t size = 0;
      std::memcpy(&size, code.data() + wide.size(), sizeof size);
      return size;
    }
  if (starts_with(code, {0x41}))
    code = code.subspan(1);
  if (code.empty())
    return 0;
  constexpr unsigned kPush = 0x50, kPop = 0x58, kEnd = 0x60;
  const auto byte = std::to_integer<unsigned>(code.front());
  constexpr unsigned kOperation = 0x38, kPushOperation = 0x30;  // of the byte after ff
  const bool is_push = (byte >= kPush && byte < kPop) || byte == 0x68 || byte == 0x6a ||
                       byte == 0x9c ||
                       (byte == 0xff && code.size() > 1 &&
                        (std::to_integer<unsigned>(code[1]) & kOperation) == kPushOperation);
  const bool is_pop = (byte >= kPop && byte < kEnd) || byte == 0x8f || byte == 0x9d;
  return is_push ? -kWord : is_pop ? kWord : 0;
}

/// Whether code does not go on after an instruction: hlt, ud2, int3.
bool ends_here(Bytes code) {
  return starts_with(code, {0xf4}) || starts_with(code, {0x0f, 0x0b}) || starts_with(code, {0xcc});
}

bool is_call(Bytes code) {
  constexpr unsigned kOperation = 0x38, kCall = 0x10;  // of the byte after ff
  if (starts_with(code, {0x41}))
    code = code.subspan(1);
  return starts_with(code, {0xe8}) || (starts_with(code, {0xff}) && code.size() > 1 &&
                                       (std::to_integer<unsigned>(code[1]) & kOperation) == kCall);
}

/// Follows code from an instruction to where it leaves its function, and keeps track of the stack
/// pointer on the way.
class WayOut {
 public:
  explicit WayOut(Bytes code) : code_(code), seen_(code.size()) {}

  /// Returns the first rule that `accepts` of the instruction at `at`; nullopt if there is none.
  /// `may_jump` tells whether an indirect jump leaves the function.
  template <typename Accepts>
  std::optional<Rule> from(std::size_t at, bool may_jump, Accepts accepts) {
    constexpr std::size_t kMostInstructions = 4000;
    std::vector<Path> paths{{.at = at}};
    for (std::size_t i = 0; i < kMostInstructions && !paths.empty(); ++i) {
      Path path = paths.back();
      paths.pop_back();
      const auto instruction = decode_new(path.at);
      if (!instruction)
        continue;
      const Bytes rest = code_.subspan(path.at);
      using Flow = unwind::Instruction::Flow;
      const bool leaves = instruction->flow == Flow::kReturn ||
                          (instruction->flow == Flow::kIndirectJump && may_jump);
      if (is_call(rest) && !first_call_)
        first_call_ = path;
      const auto rule = leaves ? path.rule() : path.follow(rest);
      if (rule && accepts(*rule))
        return rule;
      pushes_left_ = std::max(pushes_left_, path.pushes_left);
      if (!rule && !leaves && !path.is_lost)
        push_next(paths, path, *instruction);
    }
    return std::nullopt;
  }

  /// Returns the rule in a method with frames of `words`, from the first call that from() came
  /// across: there, nothing is pushed.  nullopt if there was none.
  [[nodiscard]] std::optional<Rule> by_first_call(std::uint32_t words) const {
    constexpr std::int64_t kWord = Path::kWord;
    if (!first_call_ || first_call_->popped_bytes < 0 || first_call_->popped_bytes % kWord != 0)
      return std::nullopt;
    const auto at_call = words + static_cast<std::uint32_t>(first_call_->popped_bytes / kWord);
    if (!first_call_->saved_at)
      return Rule(RuleKind::kStackPointer, at_call, kSlot);
    return Rule(RuleKind::kSavedStackPointer, at_call,
                static_cast<std::uint32_t>(*first_call_->saved_at / kWord));
  }

  /// Returns the rule in a method with frames of `words` while it saves the stack pointer, which
  /// from() saw being restored: the search for a string (HotSpot,
  /// C2_MacroAssembler::string_indexof) pushes the counts and places of both strings' parts, and
  /// that last.  nullopt elsewhere.
  [[nodiscard]] std::optional<Rule> by_pushes_left(std::uint32_t words) const {
    constexpr std::int64_t kPushes = 4;
    if (pushes_left_ <= 0 || pushes_left_ >= kPushes)
      return std::nullopt;
    return Rule(RuleKind::kStackPointer, words + static_cast<std::uint32_t>(kPushes - pushes_left_),
                kSlot);
  }

 private:
  struct Path {
    std::size_t at = 0;
    std::int64_t popped_bytes = 0;            ///< since the start, or since saved_at
    bool is_pushed = false;                   ///< rbp, on the way
    bool is_lost = false;                     ///< where the stack pointer is, is unknown
    std::int64_t pushes_left = 0;             ///< up to that of the stack pointer that is popped
    std::optional<std::int64_t> set_at = {};  ///< where rbp was set on the way
    std::optional<std::int64_t> restored_at =
        {};  ///< where rbp was popped that had been pushed before
    /// Where the stack pointer was popped that had been pushed before.
    std::optional<std::int64_t> saved_at = {};

    /// Applies an instruction.  Returns a rule if it restores the stack pointer from rbp, which was
    /// set before the start.
    std::optional<Rule> follow(Bytes code) {
      const bool is_leave = starts_with(code, {0xc9});
      if (is_leave || starts_with(code, {0x48, 0x8b, 0xe5})) {  // mov rsp, rbp
        if (!set_at)
          return kByFramePointer;
        popped_bytes = *set_at;
        if (is_leave)
          pop_frame_pointer();
      } else if (starts_with(code, {0x5d})) {  // pop rbp
        pop_frame_pointer();
      } else if (starts_with(code, {0x5c})) {  // pop rsp
        is_lost = saved_at || popped_bytes < 0;
        pushes_left = !saved_at && popped_bytes < 0 ? -popped_bytes / kWord : 0;
        saved_at = std::exchange(popped_bytes, 0);
      } else if (starts_with(code, {0x48, 0x8b, 0xec}) ||  // mov rbp, rsp
                 starts_with(code, {0x48, 0x89, 0xe5})) {
        set_at = popped_bytes;
      } else if (starts_with(code, {0x48, 0x83, 0xe4})) {  // and rsp, N
        is_lost = true;
      } else {
        is_pushed = is_pushed || starts_with(code, {0x55});  // push rbp
        popped_bytes += bytes_popped(code);
      }
      return std::nullopt;
    }

    void pop_frame_pointer() {
      if (!is_pushed)
        restored_at = popped_bytes;
      popped_bytes += kWord;
    }

    [[nodiscard]] std::optional<Rule> rule() const {
      if (restored_at && (*restored_at < 0 || *restored_at > popped_bytes))
        return std::nullopt;
      if (popped_bytes < 0 || popped_bytes % kWord != 0 || popped_bytes / kWord >= Rule::kMaxSlot)
        return std::nullopt;
      const auto words = static_cast<std::uint32_t>(popped_bytes / kWord) + 1;
      const auto slot = restored_at ? words - static_cast<std::uint32_t>(*restored_at / kWord) : 0U;
      if (!saved_at)
        return Rule(RuleKind::kStackPointer, words, slot);
      const bool fits =
          slot == kSlot && *saved_at % kWord == 0 && *saved_at / kWord <= Rule::kMaxSlot;
      return fits ? std::optional(Rule(RuleKind::kSavedStackPointer, words,
                                       static_cast<std::uint32_t>(*saved_at / kWord)))
                  : std::nullopt;
    }

    static constexpr std::int64_t kWord = unwind::architecture::kWordBytes;
  };

  /// Decodes the instruction at `at`; nullopt if from() has seen it before, or if no code follows.
  std::optional<unwind::Instruction> decode_new(std::size_t at) {
    if (at >= code_.size() || seen_[at])
      return std::nullopt;
    seen_[at] = true;
    const Bytes rest = code_.subspan(at);
    return ends_here(rest) ? std::nullopt : unwind::decode_x86_64(rest);
  }

  /// Adds where `path` goes on behind its instruction: nowhere, if that jumps to an unknown place.
  static void push_next(std::vector<Path>& paths, Path path,
                        const unwind::Instruction& instruction) {
    using Flow = unwind::Instruction::Flow;
    path.at += instruction.bytes;
    if (instruction.flow == Flow::kBranch || instruction.flow == Flow::kJump) {
      Path jumped = path;
      jumped.at += static_cast<std::size_t>(instruction.target);  // beyond the code if negative
      paths.push_back(jumped);
    }
    if (instruction.flow != Flow::kJump && instruction.flow != Flow::kIndirectJump)
      paths.push_back(path);
  }

  Bytes code_;
  std::vector<bool> seen_;
  std::optional<Path> first_call_;
  std::int64_t pushes_left_ = 0;
};

/// Whether a call ends at `end`.
bool call_ends_at(Bytes code, std::size_t end) {
  constexpr std::size_t kShortest = 2, kLongest = 8;
  for (std::size_t bytes = kShortest; bytes <= std::min(kLongest, end); ++bytes) {
    const Bytes call = code.subspan(end - bytes);
    const auto instruction = is_call(call) ? unwind::decode_x86_64(call) : std::nullopt;
    if (instruction && instruction->bytes == bytes)
      return true;
  }
  return false;
}

/// Reads code around an address; empty if it is unreadable.
struct Surroundings {
  Surroundings(const CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
    constexpr std::uint64_t kMostBytes = 8192, kMostBefore = 2048;
    const std::uint64_t from = std::max(blob.code_start, avma - std::min(avma, kMostBefore));
    code.resize(std::min(blob.code_end - from, kMostBytes));
    at = avma - from;
    if (!read(from, code))
      code.clear();
    else if (at + 1 < code.size() && call_ends_at(code, at + 1))
      ++at;
  }
  std::vector<std::byte> code;
  std::size_t at;  ///< of the instruction, or of that after the call
};

/// The rule of a stub, whose frame has no known size.
Rule rule_of_stub(const CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
  const Surroundings here(blob, avma, read);
  return WayOut(here.code)
      .from(here.at, /*may_jump=*/true, [](Rule) { return true; })
      .value_or(kByFramePointer);
}

/// The rule of a method whose frame is complete.  Some of its instructions push more: those that
/// compare and search strings, for example.  The code that follows shows what they will pop.
Rule rule_of_method(const CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
  const std::uint32_t words = blob.frame_words;
  const Rule whole(RuleKind::kStackPointer, words, words > 1 ? kSlot : 0);
  const Surroundings here(blob, avma, read);
  if (here.code.empty())
    return whole;
  if (const auto rule = rule_of_epilogue(Bytes(here.code).subspan(here.at)))
    return *rule;
  // Less than the frame means that the code was not understood.
  const auto can_be = [&](Rule rule) {
    return rule.kind() == RuleKind::kSavedStackPointer
               ? rule.cfa_words() == words
               : rule.kind() == RuleKind::kStackPointer && rule.cfa_words() >= words &&
                     rule.frame_pointer_slot() == whole.frame_pointer_slot();
  };
  WayOut way(here.code);
  if (const auto rule = way.from(here.at, /*may_jump=*/false, can_be))
    return *rule;
  if (words <= 1)
    return whole;
  const auto pushing = way.by_pushes_left(words);
  return pushing ? *pushing : way.by_first_call(words).value_or(whole);
}

}  // namespace

Rule java_rule(const CodeBlob& blob, std::uint64_t avma, const ReadCode& read) {
  if (blob.kind == CodeBlob::Kind::kInterpreter)
    return kOfInterpreter;
  if (blob.frame_words == 0)
    return rule_of_stub(blob, avma, read);
  if (avma < blob.frame_complete)
    return rule_of_prologue(blob, avma, read);
  return rule_of_method(blob, avma, read);
}

namespace {

/// The registers in which the interpreter has the address of the bytecode, and at the start of a
/// method the method.
constexpr unsigned kBytecodeRegister = 13, kMethodRegister = 3;

}  // namespace

JavaCode::FoundBinary JavaCode::find(const objects::Image& image, bool /*has_name*/) {
  return std::make_shared<const JavaBinary>(
      JavaBinary{find_hotspot(image), {image.segments().begin(), image.segments().end()}});
}

std::variant<HotspotProcess, std::string> JavaCode::open_machine(Memory memory,
                                                                 const JavaBinary& binary,
                                                                 const stream::Mapping& mapping) {
  const auto svma = objects::svma_of_code_mapping(binary.segments, mapping.file_offset);
  if (!binary.hotspot || !svma)
    return "a Java without descriptions of its structures";
  return HotspotProcess::open(std::move(memory), *binary.hotspot, mapping.start - *svma);
}

std::optional<unwind::Rule> JavaCode::rule(std::uint32_t pid, std::uint64_t avma) {
  // A JVM that runs code without a file has finished its start, and its tables are complete.
  Process* const process = opened(pid);
  HotspotProcess* const jvm = process != nullptr ? &process->opened->machine : nullptr;
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
  HotspotProcess* const jvm = &process->opened->machine;
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
  HotspotProcess& jvm = process->opened->machine;
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
