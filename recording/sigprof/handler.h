// The handler of SIGPROF while a program profiles itself.  Also restores the previous action.
// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <cstdint>

#include "recording/sigprof/thread_table.h"

namespace pe::inprocess {

/// Returns the upper half of the value that the signals of a table's timers carry.  It differs from
/// those of earlier tables, whose last signals may come late but are still recognized.
std::uint64_t next_cookie() noexcept;

/// Whether SIGPROF is free: no function is set for it.
bool is_signal_free() noexcept;

/// Installs our handler for SIGPROF.  From then on signals with the cookie are samples for `table`.
/// False on failure; errno has the reason.
bool install_handler(ThreadTable& table) noexcept;

/// Whether our handler is still installed.
bool is_handler_installed() noexcept;

/// Whether no handler accesses the table: all samples of handlers that have started are in the
/// rings.  A handler may be interrupted for long.
bool are_handlers_idle() noexcept;

/// Removes our handler: when this returns, no handler accesses the table.  The table's timers must
/// have been stopped.  Discards their pending signals, and restores the previous action for
/// SIGPROF, unless the program has set another one meanwhile.
void remove_handler() noexcept;

/// Does the same in the child of a fork(2), which has no timers and one thread.
void remove_handler_in_child() noexcept;

}  // namespace pe::inprocess
