// Steps to the caller where no call frame information helps.  Internal.
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <variant>

#include "unwind/address_space.h"
#include "unwind/architecture.h"
#include "unwind/cfi/cfi_program.h"
#include "unwind/walk/frame.h"
#include "unwind/walk/stack_view.h"

namespace pe::unwind {

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

}  // namespace pe::unwind
