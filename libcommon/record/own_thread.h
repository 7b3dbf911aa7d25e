// A thread of the recorder's own.
// SPDX-License-Identifier: MIT
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace pe::record {

/// `run` must not throw.  Throws Error where there is no memory for another thread, or there are
/// too many.
template <typename Run>
std::thread start_thread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    throw_errno("a thread of our own (ulimit -u, -v)", error.code().value());
  }
}

}  // namespace pe::record
