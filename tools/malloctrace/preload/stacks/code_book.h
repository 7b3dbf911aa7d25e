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
#include <string_view>

#include "malloctrace/preload/memory/private_memory.h"
#include "malloctrace/preload/memory/shared_memory.h"
#include "malloctrace/preload/memory/spin_lock.h"
#include "malloctrace/preload/stacks/code_table.h"
#include "recording/inprocess/runtime/proc_self.h"
#include "stream/proc/maps_line.h"
#include "unwind/cfi/cfi_entries.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/walk/stack_view.h"

// The mappings of code that stacks have led to, as in /proc/self/maps.  A mapping is recorded in
// the shared memory when one of its addresses is first met.  A mapping that has gone and come back
// unchanged is the same.

namespace pe::malloctrace {

/// The caller must hold a lock for all calls.
class ModuleList {
 public:
  /// To be called once before anything else; false if there is no memory.
  bool start(SharedMemory shared) noexcept;

  /// Returns the number of the module of `avma`, plus one, as in heap::Code::module.  0 if nothing
  /// executable is mapped there, or if there is no room.
  std::uint32_t find(std::uint64_t avma) noexcept;
  /// Forgets mappings that are gone or changed, and calls `on_gone(start, end)` for each.
  template <typename Function>
  void drop_unmapped(Function on_gone) noexcept {
    find_gone();
    for (std::size_t i = known_; i-- > 0;) {
      if (!is_gone_[i])
        continue;
      on_gone(ranges_[i].start, ranges_[i].end);
      ranges_[i] = ranges_[--known_];
    }
  }

 private:
  struct Range {
    std::uint64_t start, end;
    std::uint32_t number;  ///< of the module, plus one
  };
  std::uint32_t add(const stream::MapsLine& map) noexcept;
  std::uint32_t append(const stream::MapsLine& map) noexcept;
  void find_gone() noexcept;
  /// `number` is that of a module, plus one.
  [[nodiscard]] bool is_same(std::uint32_t number, const stream::MapsLine& map) const noexcept;

  SharedMemory shared_;
  PrivateArray<Range> ranges_;
  PrivateArray<bool> is_gone_;
  std::size_t known_;
  inprocess::MapsRoom room_;
};

}  // namespace pe::malloctrace

// Reads call frame information in place, from images that the dynamic linker has loaded into this
// process.  It serves to walk our own stack.  It never allocates and never throws.

namespace pe::unwind {

/// An image in memory.  Its addresses are avma, which are used here as svma.
struct LoadedImage {
  std::uint64_t start, end;    ///< bounds of the whole image, parts of which may be unmapped
  std::uint64_t frame_header;  ///< its .eh_frame_hdr, which is inside the image
};

struct LoadedFde {
  Fde fde;
  std::uint64_t data_avma;  ///< DW_EH_PE_datarel counts from here
};

/// Returns the entry that covers `avma`; nullopt if there is none, or the image has no search
/// table.  Trusts that the sections are mapped as their headers describe.
std::optional<LoadedFde> find_loaded_fde(const LoadedImage& image, std::uint64_t avma) noexcept;

}  // namespace pe::unwind

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

  /// Returns the number of a new code for a frame of an interpreter; 0 if there is no room.
  std::uint32_t add_script(std::uint32_t script) noexcept;

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
  std::uint32_t append(heap::Code code) noexcept;
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
