// Walks a stack with all registers and without a cache.  This is slow, but always enough.
// Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <variant>

#include "unwind/address_space.h"
#include "unwind/architecture.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/cfi/unwind_table.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"
#include "unwind/walk/thread_history.h"

namespace pe::unwind {

// Steps to the caller where no call frame information helps.  Internal.

/// Steps from code that no table describes (`rule` kNone), or from an address without code
/// (kNotExecutable: an exact address that was jumped to).  Returns how `state` became the caller's,
/// or why it did not.  `frame` is the frame that the step leaves; only an exact one may be a leaf.
///
/// Without a table for the code, a frame pointer of 0 means the outermost frame.  The ABI requires
/// it at program start, and the first code of the dynamic loader and of many C libraries has no
/// CFI.  Code made at run time is in no described image, and may use the register for anything.  In
/// such code 0 means the outermost frame only after a step by the frame pointer.  No frame is the
/// outermost one if a return address is near above its stack pointer.
std::variant<FrameSource, Stop> step_without_cfi(AddressSpace& space, RuleKind rule,
                                                 FrameState& state, const StackView& stack,
                                                 Frame frame);

/// Steps by a row whose CFA was saved below the stack pointer (OpenSSL's sha512), where copies by
/// the kernel have nothing; nullopt if it is no such row, or no caller was found.  Such code keeps
/// another copy in its frame, which is searched: the first word that points at a return address
/// further out.  This is a guess.
std::optional<Step> step_by_copy_of_cfa(AddressSpace& space, const CfiRow& row,
                                        architecture::Registers& registers, const StackView& stack);

/// Whether the return address `avma` is that of the kernel's trampoline, the first byte of the
/// mapping "[uprobes]", before which there is no call.  The kernel puts it into the place of the
/// true address, which it keeps to itself, while a function with a return probe of another tool
/// runs.
bool is_trampoline(AddressSpace& space, std::uint64_t avma);

/// Returns why a stack ends whose next return address, `state.ip`, is in no code; `callee` would
/// return there.  Threads of code without CFI start with 0.  So do coroutines.  Code of a runtime
/// is always called: there, 0 is another word than the return address.
Stop stop_at_no_code(const AddressSpace& space, const FrameState& state, Frame callee);

/// Returns why a stack ends after a step that failed.
Stop stop_of(Step step) noexcept;

// Limits the cost of the rows of one stack that are interpreted anew for each frame.
//
// A malicious table can make such a row as expensive as a megabyte of instructions.  Valid rows
// take some hundred bytes.  Without a limit, a stack of 4,000 such frames takes minutes.

class Effort {
 public:
  /// Returns false once the effort is used up.
  bool spend(const UnwindTable::FullRow& row) noexcept {
    left_ = row.cost < left_ ? left_ - row.cost : 0;
    return left_ != 0;
  }

 private:
  std::size_t left_ = std::size_t{2} << 20;  ///< in the unit of FullRow::cost; some 10 ms
};

// The start of a walk.

struct WalkStart {
  /// The thread's registers; at least rip, rsp and rbp.
  architecture::Registers registers;
  /// Whether the ip is a return address, because the walk continues from a WalkResult::last.
  bool is_caller = false;
};

/// Gives the same guarantees as Walker::walk(), and the same result where that does not need this.
/// If `scratch` is not null, it receives each frame's stack pointer and frame pointer.  It has room
/// for as many frames as `out`.
WalkResult walk_with_all_registers(AddressSpace& space, const WalkStart& start,
                                   const StackView& stack, std::span<Frame> out,
                                   HistoryScratch* scratch = nullptr);

/// Writes the first frame into `out`, and into `scratch` as above.  Returns false if there is
/// nothing more to walk; `result` gives the reason.
bool begin_walk(const WalkStart& start, const StackView& stack, std::span<Frame> out,
                WalkResult& result, HistoryScratch* scratch = nullptr);

}  // namespace pe::unwind
