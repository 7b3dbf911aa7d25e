// Slots of the table of threads (see inprocess/sampler/layout.h): taken, timed, given back.  For
// handlers.
// SPDX-License-Identifier: MIT
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace pe::inprocess {

/// Takes a free slot for a thread; kNoSlot if there is none.
std::uint32_t claim_slot(pid_t tid) noexcept;

/// Whether there are slots of threads that have ended, which the reader has not freed yet.
bool is_reader_behind() noexcept;

/// The slot of a thread that is sampled; kNoSlot if it has none.
std::uint32_t live_slot_of(pid_t tid) noexcept;

/// Whether the thread's signals are samples from now on.  It may end that at once itself: see
/// is_slot_of_this_thread().
bool arm(std::uint32_t slot, pid_t tid) noexcept;

void disarm(std::uint32_t slot) noexcept;

/// Of a thread that has ended, or has another slot: the reader frees it.
void give_back(std::uint32_t slot) noexcept;

}  // namespace pe::inprocess
