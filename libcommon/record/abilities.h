// What can be recorded on this machine by this user, and how to get more: for those who stand
// before a refusal, on a machine that they do not know.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "record/request.h"

namespace pe::record {

struct Ability {
  std::string what;    ///< such as "perf_event_open: own processes"
  std::string answer;  ///< "yes", "no", or a value
  std::string more;    ///< what that means, or how to get more; may be empty
};

struct Abilities {
  std::vector<Ability> lines;  ///< always the same ones, in the same order
  bool has_perf = false, has_signals = false, has_ptrace = false;
};

/// Looks, and tries: counters are opened and closed, programs are loaded into the kernel and
/// dropped again.
Abilities find_abilities();

}  // namespace pe::record
