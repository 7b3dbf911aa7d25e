// Ctrl-C and its kin as something to poll, for tools that must end in good order.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/fd.h"

namespace pe::cli {

/// While it lives, SIGINT, SIGTERM and SIGHUP do not end the process but make
/// fd() readable, and SIGPIPE is an error of write(2).  One at a time.
class StopSignals {
 public:
  /// Throws Error.
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  StopSignals(StopSignals&&) = delete;
  StopSignals& operator=(StopSignals&&) = delete;
  /// Puts things back as they were; signals that came meanwhile are forgotten.
  ~StopSignals();

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Takes one signal if there is one.
  bool take();

 private:
  Fd fd_;
};

}  // namespace pe::cli
