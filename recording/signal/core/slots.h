// Claims the slots of the table of threads (see recording/signal/layout.h), starts their timers,
// and gives them back.  For handlers.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace pe::inprocess {

/// Claims a free slot for a thread; kNoSlot if there is none.
std::uint32_t claim_slot(pid_t tid) noexcept;

/// Whether there are slots of ended threads, which the reader had not freed yet when claim_slot()
/// failed.
bool is_reader_behind() noexcept;

/// The slot of a thread that is sampled; kNoSlot if it has none.
std::uint32_t live_slot_of(pid_t tid) noexcept;

/// Starts the thread's timer, so that its signals become samples; false if that fails.  The thread
/// may undo this at once: see is_slot_of_this_thread().
bool arm(std::uint32_t slot, pid_t tid) noexcept;

void disarm(std::uint32_t slot) noexcept;

/// Gives back the slot of a thread that has ended or has another slot.  The reader frees it.
void release(std::uint32_t slot) noexcept;

}  // namespace pe::inprocess
