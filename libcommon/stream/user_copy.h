// What a sample may carry of the program itself: its registers, and the top of its stack
// (PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER; perf_event_open(2)); and the same sample with a
// call chain in their place.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "stream/held_records.h"
#include "stream/records/sample.h"
#include "stream/stream_writer.h"

namespace pe::stream {

/// The registers to ask for, a bit each: all that call frame information can name.  0 on a machine
/// whose registers we do not know.
std::uint64_t wanted_user_regs() noexcept;

/// Calls `on_register(dwarf_number, value)` for each register of the sample that has a DWARF
/// number (System V ABI AMD64, figure 3.36); `mask` is the event's sample_regs_user.  None for a
/// program of another word size.
void for_each_register(const Sample& sample, std::uint64_t mask,
                       const std::function<void(unsigned, std::uint64_t)>& on_register);

/// Adds what a sample has of registers (PERF_SAMPLE_REGS_USER) for an event with that `mask`:
/// `values` by DWARF number, 0 for those that it has not.
void add_user_regs(RecordBuilder& builder, std::uint64_t abi, std::uint64_t mask,
                   std::span<const std::uint64_t> values);

/// Adds a copy of the stack (PERF_SAMPLE_STACK_USER) for an event that asked for `wanted_bytes`:
/// whole words of `stack`, and if that is less than wanted, room for one more, so that it stays
/// visible that the stack could not be read any further.
void add_user_stack(RecordBuilder& builder, Bytes stack, std::size_t wanted_bytes);

/// Where the program was, also if it is of another word size; nullopt if that was not asked for.
std::optional<std::uint64_t> user_ip(const Sample& sample, std::uint64_t mask) noexcept;

/// The attr without all that samples have of stacks.
perf_event_attr without_stacks(perf_event_attr attr) noexcept;

/// The attr of such samples once they have call chains instead.
perf_event_attr with_call_chain(perf_event_attr attr) noexcept;
/// The same of a HEADER_ATTR record; as it came if its samples carry no copies, or it is malformed.
/// Valid until `builder` begins another record, and as long as `attr_record`.
std::string_view with_call_chain(const Record& attr_record, RecordBuilder& builder);
/// Do samples of this event carry both, so that their stacks can be walked?
bool has_user_copy(const perf_event_attr& attr) noexcept;

/// The sample with `chain`, leaf first with PERF_CONTEXT_* marks, for call chain, registers and
/// stack.  What does not fit a record is left out at the root: how many entries that are goes to
/// `left_out`.  Valid until `builder` begins another.
std::string_view replace_user_copy(const Record& record, const Sample& sample,
                                   std::span<const std::uint64_t> chain, RecordBuilder& builder,
                                   std::size_t& left_out);

/// Holds a sample without the room that was reserved for a deeper stack: a thread's stack is often
/// a few KiB, the room 64.  Whether the copy is full stays as it was.
void hold_trimmed(const Record& record, const Sample& sample, HeldRecords& held);

}  // namespace pe::stream
