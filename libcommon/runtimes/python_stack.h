// The stack of a Python thread.
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "runtimes/python_walk.h"

namespace pe::runtimes {

/// The stack of a thread, the innermost frame first.
struct PythonStack {
  std::vector<PythonFrame> frames;
  bool is_complete = true;  ///< false: it is longer, or a frame was unreadable
};

}  // namespace pe::runtimes
