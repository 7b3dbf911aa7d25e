// The code of V8, as in Node, in the recorded processes: how to walk it, and its functions by name.
//
// Functions of JavaScript are in frames of four kinds of code:
//  - the interpreter, a builtin in the program's file, whose frame has the function,
//  - the baseline compiler's, likewise, at an address of its own,
//  - the optimizing compilers', which describe the functions in them, also inlined ones,
//  - builtins, which the file names.  Most have frames; if an innermost one has none, the frame is
//    its caller's.
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
#include "languages/node/process.h"

namespace pe::languages {

class V8Code : public RuntimeProcesses<V8Process, V8Binary> {
 public:
  V8Code(OnRuntimeFunction on_function, Budget& budget)
      : RuntimeProcesses(
            std::move(on_function), budget,
            {"Node", "[node: unreadable]",
             "start it with --perf-basic-prof, or use Node 18, 20, 22, 24 or 25 with symbols, as "
             "from nodejs.org"}) {}

  [[nodiscard]] bool may_have(std::string_view path) const override;
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

  [[nodiscard]] std::optional<V8Binary> find(const objects::Image& image) const override;
  [[nodiscard]] std::variant<V8Process, std::string> open(Memory memory, const V8Binary& binary,
                                                          const stream::Mapping& mapping) override;

  Place place_of(std::uint32_t pid, const Process& process, std::uint64_t avma,
                 bool is_before_return = false);
  void add_interpreted(const Replaced& replaced, const V8Frame& frame);
  void add_compiled(const Replaced& replaced, std::uint64_t at, std::uint64_t lowest);
  bool add_builtin(const Replaced& replaced, V8Binary::Builtin builtin);
  bool add_caller_of_leaf(const Replaced& replaced, const V8Frame& frame);

  bool has_read_ = false;
};

}  // namespace pe::languages
