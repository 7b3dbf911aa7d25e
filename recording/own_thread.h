// Starts threads of the recorder.
// SPDX-License-Identifier: MIT
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace pe::recording {

/// Starts a thread; `run` must not throw.  Throws Error if memory is short, or there are too many
/// threads.
template <typename Run>
std::thread start_thread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    throw_errno("a thread of our own (ulimit -u, -v)", error.code().value());
  }
}

}  // namespace pe::recording
