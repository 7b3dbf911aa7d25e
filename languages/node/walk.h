// Walks code that V8 has compiled at run time: how to leave a frame, and the functions of a frame
// by name.
//
// Functions link their frames by rbp: they start with push rbp; mov rbp, rsp, and end with
// mov rsp, rbp; pop rbp and a few instructions that remove their arguments.
//
// Source: V8, src/codegen/x64/macro-assembler-x64.cc (EnterFrame, LeaveFrame),
// src/compiler/backend/x64/code-generator-x64.cc (AssembleReturn).
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "languages/common/known_runtime.h"
#include "languages/common/memory.h"
#include "languages/node/code.h"
#include "languages/node/process.h"
#include "unwind/rule.h"

namespace pe::languages {

/// Returns the rule of the instruction at `avma`, which is in `code`, or one byte before a return
/// address.
unwind::Rule v8_rule(const V8CodeFields& code, std::uint64_t avma, const ReadCode& read);

// The code of V8, as in Node, in the recorded processes: how to walk it, and its functions by name.
//
// Functions of JavaScript are in frames of four kinds of code:
//  - the interpreter, a builtin in the program's file, whose frame has the function,
//  - the baseline compiler's, likewise, at an address of its own,
//  - the optimizing compilers', which describe the functions in them, also inlined ones,
//  - builtins, which the file names.  Most have frames; if an innermost one has none, the frame is
//    its caller's.

class V8Code : public MachineCode<V8Process, V8Binary> {
 public:
  V8Code(OnRuntimeFunction on_function, Budget& budget)
      : MachineCode(std::move(on_function), budget, kNode) {}

  std::optional<unwind::Rule> rule(std::uint32_t pid, std::uint64_t avma) override;
  bool are_outdated(std::uint32_t pid, std::span<const unwind::Frame> frames) override;
  bool functions(std::uint32_t pid, const WalkedFrame& walked, const unwind::StackView& stack,
                 std::vector<std::uint64_t>& addresses) override;
  /// V8 may move the functions of a stack several times within 100 ms.
  bool take_hurry() override { return std::exchange(has_read_, false); }

 private:
  /// Where an address is.
  struct Place {
    const stream::Mapping* mapping = nullptr;
    std::optional<V8Binary::Builtin> builtin = std::nullopt;
    /// Whether it may be code that was compiled at run time.
    [[nodiscard]] bool is_compiled() const noexcept {
      return mapping != nullptr && mapping->file->is_anonymous();
    }
  };
  /// A frame that is replaced.
  struct Replaced {
    std::uint32_t pid;
    Process& process;
    const WalkedFrame& walked;
    const unwind::StackView& stack;
    std::vector<std::uint64_t>& addresses;
  };

  FoundBinary find(const objects::Image& image, bool has_name) override;
  [[nodiscard]] std::variant<V8Process, std::string> open_machine(
      Memory memory, const V8Binary& binary, const stream::Mapping& mapping) override;
  [[nodiscard]] std::string advice(const V8Binary& binary) const override;

  Place place_of(std::uint32_t pid, const Process& process, std::uint64_t avma,
                 bool is_before_return = false);
  void add_interpreted(const Replaced& replaced, const V8Frame& frame);
  void add_compiled(const Replaced& replaced, std::uint64_t at, std::uint64_t lowest);
  bool add_builtin(const Replaced& replaced, V8Binary::Builtin builtin);
  bool add_caller_of_leaf(const Replaced& replaced, const V8Frame& frame);

  bool has_read_ = false;
};

}  // namespace pe::languages
