// What a walk must know of code: how to step out of it, and its number in the shared memory.
//
// An address is looked up in a table without a lock; what is not there is found out once: its rule
// from the call frame information that the dynamic linker has mapped, and its module.
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "malloctrace/preload/memory/spin_lock.h"
#include "malloctrace/preload/stacks/code_table.h"
#include "malloctrace/preload/stacks/module_list.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/walk/stack_view.h"

namespace pe::malloctrace {

/// What a step by a whole row has come to.
struct GeneralStep {
  unwind::Step step;
  bool is_signal_frame;
};

class CodeBook {
 public:
  /// To be called once before anything else; false if there is no memory.
  /// A process that is forked does not ask by itself what was unloaded: the dynamic linker's lock
  /// may be held by a thread that is not there.
  bool start(SharedMemory shared, bool is_fork = false) noexcept;

  /// nullopt if there is no room.
  [[nodiscard]] std::optional<KnownCode> look_up(CodeKey key) noexcept {
    const KnownCode* known = table_.find(key);
    return known != nullptr ? std::optional(*known) : add(key);
  }
  /// What is known now, and without looking further.
  [[nodiscard]] const CodeTable::Table* known() const noexcept { return table_.table(); }
  /// A rule of kGeneral, which is found again each time.
  GeneralStep step_by_row(CodeKey key, unwind::architecture::Registers& registers,
                          const unwind::StackView& stack) noexcept;

  /// Changes when something that was known may be wrong.
  [[nodiscard]] std::uint32_t generation() const noexcept { return load_relaxed(generation_); }
  /// To be called when code may have been unloaded.
  void forget_unloaded() noexcept;
  [[nodiscard]] std::size_t private_bytes() const noexcept {
    return table_.private_bytes() + (has_gone_ ? gone_.private_bytes() : 0);
  }

 private:
  std::optional<KnownCode> add(CodeKey key) noexcept;
  void drop(std::uint64_t start, std::uint64_t end) noexcept;
  std::uint32_t number_of(CodeKey key, std::uint32_t module) noexcept;
  [[nodiscard]] bool has_unloaded() noexcept;
  unwind::Rule find_rule(CodeKey key) noexcept;

  SharedMemory shared_;
  SpinLock lock_;
  CodeTable table_;
  CodeTable gone_;  ///< numbers of codes whose modules were unloaded, which may come back
  bool has_gone_;   ///< whether gone_ has begun
  ModuleList modules_;
  std::uint32_t generation_;
  bool is_fork_;
  std::uint64_t unloaded_;  ///< what the dynamic linker had unloaded when it was last asked
  /// For the interpreter of rows; under the lock.
  std::array<unwind::CfiRow, unwind::CfiProgram::kMaxRememberedStates> room_;
};

}  // namespace pe::malloctrace
