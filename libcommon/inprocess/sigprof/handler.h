// The handler of SIGPROF while a program profiles itself, and the way back to what was there.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <cstdint>

#include "inprocess/sigprof/thread_table.h"

namespace pe::inprocess {

/// What signals of a table's timers are to carry in the upper half of their value.  Differs from
/// that of earlier tables, whose last signals may come late, and are known all the same.
std::uint64_t next_cookie() noexcept;

/// Whether SIGPROF is free: nobody has set a function for it.
bool is_signal_free() noexcept;

/// Takes SIGPROF over; from then on signals with its cookie are samples for `table`.  False: errno.
bool install_handler(ThreadTable& table) noexcept;

/// Whether SIGPROF is still ours.
bool is_handler_installed() noexcept;

/// Ends it: when this returns, no handler looks at the table.  Its timers must have been stopped.
/// Signals of theirs that wait for threads are thrown away, and what was set for SIGPROF before is
/// set again, unless the program has set something else meanwhile.
void remove_handler() noexcept;

/// The same in the child of a fork(2), which has no timers and one thread.
void remove_handler_in_child() noexcept;

/// Lets SIGPROF through to the calling thread.
void unblock_signal() noexcept;

}  // namespace pe::inprocess
