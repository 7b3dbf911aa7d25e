// Code that runtimes have made in their processes, and that they describe themselves: compiled
// methods, interpreters, stubs.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "unwind/architecture.h"
#include "unwind/rule.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/step.h"

namespace pe::unwind {

class RuntimeCode {
 public:
  RuntimeCode() = default;
  RuntimeCode(const RuntimeCode&) = delete;
  RuntimeCode& operator=(const RuntimeCode&) = delete;
  RuntimeCode(RuntimeCode&&) = delete;
  RuntimeCode& operator=(RuntimeCode&&) = delete;
  virtual ~RuntimeCode() = default;

  /// Whether the process has a runtime.
  virtual bool is_in(std::uint32_t pid) = 0;
  /// Returns the rule of an instruction; nullopt if it is not a runtime's.
  virtual std::optional<Rule> rule(std::uint32_t pid, std::uint64_t avma) = 0;
  /// Returns whether the rules that rule() has returned are outdated, since the last call. `frames`
  /// are of a stack that was walked by them.
  virtual bool are_outdated(std::uint32_t pid, std::span<const Frame> frames) = 0;
  /// A frame of a stack that was walked.
  struct WalkedFrame {
    Frame frame;
    FrameState state;  ///< without frame pointer (0) if that is unknown
    /// Those of a stack's first frame; null for others.
    const architecture::Registers* registers = nullptr;
  };
  /// Appends what replaces a frame in the call chain, as innermost frames: the innermost first.
  /// Returns false if the frame is not a runtime's.
  virtual bool functions(std::uint32_t pid, const WalkedFrame& walked, const StackView& stack,
                         std::vector<std::uint64_t>& addresses) = 0;
};

}  // namespace pe::unwind
