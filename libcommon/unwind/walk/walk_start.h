// The start of a walk.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/architecture.h"

namespace pe::unwind {

struct WalkStart {
  /// The thread's registers; at least rip, rsp and rbp.
  architecture::Registers registers;
  /// Whether the ip is a return address, because the walk continues from a WalkResult::last.
  bool is_caller = false;
};

}  // namespace pe::unwind
