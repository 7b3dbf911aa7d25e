// A sample may contain a copy of the program's registers and of the top of its stack
// (PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER; perf_event_open(2)).  This module reads and
// writes these copies, and replaces them with a call chain.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "stream/ordered_reader.h"
#include "stream/records/sample.h"
#include "stream/stream_writer.h"

namespace pe::stream {

/// Returns the registers to ask for, one bit each: all that call frame information can name.
/// Returns 0 on a machine whose registers we do not know.
std::uint64_t wanted_user_regs() noexcept;

/// Calls `on_register(dwarf_number, value)` for each register of the sample that has a DWARF
/// number (System V ABI AMD64, figure 3.36); `mask` is the event's sample_regs_user.  Does not call
/// it for a program of another word size.
void for_each_register(const Sample& sample, std::uint64_t mask,
                       const std::function<void(unsigned, std::uint64_t)>& on_register);

/// Returns the program's instruction pointer, also if it has another word size; nullopt if the
/// event did not ask for that register.
std::optional<std::uint64_t> user_ip(const Sample& sample, std::uint64_t mask) noexcept;

/// Returns the program's stack pointer; nullopt if the event did not ask for that register, or the
/// program has another word size.
std::optional<std::uint64_t> user_stack_pointer(const Sample& sample, std::uint64_t mask) noexcept;

/// Returns the bit of that register in PERF_SAMPLE_REGS_USER.
std::uint64_t stack_pointer_mask() noexcept;

/// Returns the attr for samples that have the stack pointer, and neither call chain nor stack.
perf_event_attr with_stack_pointer(perf_event_attr attr) noexcept;
/// Changes a sample in the same way; `mask` is its event's sample_regs_user.  The view is valid
/// until `builder` starts another record.
std::string_view with_stack_pointer(const Record& record, const Sample& sample, std::uint64_t mask,
                                    RecordBuilder& builder);

/// Returns the attr without call chains, registers and stack copies.
perf_event_attr without_stacks(perf_event_attr attr) noexcept;

/// Returns the attr for samples that contain call chains in place of registers and stack copies.
perf_event_attr with_call_chain(perf_event_attr attr) noexcept;
/// Changes a HEADER_ATTR record in the same way.  Returns it unchanged if its samples contain no
/// copies, or if it is malformed.  The view is valid until `builder` starts another record, and as
/// long as `attr_record`.
std::string_view with_call_chain(const Record& attr_record, RecordBuilder& builder);
/// Returns whether samples of this event contain registers and stack, so that their stacks can be
/// walked.
bool has_user_copy(const perf_event_attr& attr) noexcept;

/// Returns the sample with `chain`, leaf first with PERF_CONTEXT_* marks, in place of call chain,
/// registers and stack.  Entries at the root that do not fit a record are left out; `left_out`
/// receives their number.  The view is valid until `builder` starts another record.
std::string_view replace_user_copy(const Record& record, const Sample& sample,
                                   std::span<const std::uint64_t> chain, RecordBuilder& builder,
                                   std::size_t& left_out);

/// Returns the record of `sample` with another call chain.  As many entries at the root as exceed a
/// record are left out.  The view is valid until `builder` starts another record.
std::string_view replace_call_chain(const Record& record, const Sample& sample,
                                    std::span<const std::uint64_t> chain, RecordBuilder& builder);

/// Holds a sample without the unused room for a deeper stack: a thread's stack often has a few KiB,
/// the room 64.  Sample::has_full_copy() does not change.
void hold_trimmed(const Record& record, const Sample& sample, HeldRecords& held);

}  // namespace pe::stream
