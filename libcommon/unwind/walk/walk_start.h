// Where a walk begins.
// SPDX-License-Identifier: MIT
#pragma once

#include "unwind/architecture.h"

namespace pe::unwind {

struct WalkStart {
  /// Those of the thread; at least rip, rsp and rbp.
  architecture::Registers registers;
  /// Whether the ip is a return address: going on from a WalkResult::last.
  bool is_caller = false;
};

}  // namespace pe::unwind
