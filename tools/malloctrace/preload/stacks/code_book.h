// Knows how to step out of each address of code, and its number in the shared memory.
//
// An address is looked up in a table without a lock.  A missing address is examined once: its rule
// is in the call frame information that the dynamic linker has mapped, and its module in
// /proc/self/maps.
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

/// The result of a step by a whole row.
struct GeneralStep {
  unwind::Step step;
  bool is_signal_frame;
};

class CodeBook {
 public:
  /// To be called once before anything else; false if there is no memory.  A forked process does
  /// not check by itself for unloaded code: a thread that it does not have may hold the dynamic
  /// linker's lock.
  bool start(SharedMemory shared, bool is_fork = false) noexcept;

  /// nullopt if there is no room.
  [[nodiscard]] std::optional<KnownCode> look_up(CodeKey key) noexcept {
    const KnownCode* known = table_.find(key);
    return known != nullptr ? std::optional(*known) : add(key);
  }
  /// Returns the known addresses, without searching further.
  [[nodiscard]] const CodeTable::Table* known() const noexcept { return table_.table(); }
  /// Steps by a rule of kGeneral, which is found again each time.
  GeneralStep step_by_row(CodeKey key, unwind::architecture::Registers& registers,
                          const unwind::StackView& stack) noexcept;

  /// Changes when known entries may be wrong.
  [[nodiscard]] std::uint32_t generation() const noexcept { return load_relaxed(generation_); }
  /// To be called when code may have been unloaded.
  void forget_unloaded() noexcept;
  [[nodiscard]] std::size_t private_bytes() const noexcept {
    return table_.private_bytes() + (has_gone_ ? gone_.private_bytes() : 0);
  }

 private:
  std::optional<KnownCode> add(CodeKey key) noexcept;
  // These two read the images of addresses, which must not be unmapped meanwhile.
  std::optional<KnownCode> add_loaded(CodeKey key) noexcept;
  GeneralStep step_by_loaded_row(CodeKey key, unwind::architecture::Registers& registers,
                                 const unwind::StackView& stack) noexcept;
  void drop(std::uint64_t start, std::uint64_t end) noexcept;
  std::uint32_t number_of(CodeKey key, std::uint32_t module) noexcept;
  [[nodiscard]] bool has_unloaded() noexcept;
  unwind::Rule find_rule(CodeKey key) noexcept;

  SharedMemory shared_;
  SpinLock lock_;
  CodeTable table_;
  CodeTable gone_;  ///< numbers of codes whose modules were unloaded and may come back
  bool has_gone_;   ///< whether gone_ was started
  ModuleList modules_;
  std::uint32_t generation_;
  bool is_fork_;
  std::uint64_t unloaded_;  ///< the dynamic linker's count of unloaded images when we last asked
  /// For the interpreter of rows; protected by the lock.
  std::array<unwind::CfiRow, unwind::CfiProgram::kMaxRememberedStates> room_;
};

}  // namespace pe::malloctrace
