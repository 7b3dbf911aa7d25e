// Lists the kinds of recording that this user can make on this machine, and how to enable more.  It
// helps users whose recording was refused on a machine that they do not know.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "recording/request.h"

namespace pe::recording {

struct Ability {
  std::string what;    ///< such as "perf_event_open: own processes"
  std::string answer;  ///< "yes", "no", or a value
  std::string more;    ///< its meaning, or how to get more; may be empty
};

struct Abilities {
  std::vector<Ability> lines;  ///< for one build, always the same lines in the same order
  bool has_perf = false, has_bpf = false, has_signals = false, has_ptrace = false;
};

/// Reads settings and makes attempts: opens and closes counters, loads and unloads programs in the
/// kernel.
Abilities find_abilities();

/// Returns why this user cannot use the kernel's programs here; empty if he probably can.
std::string why_no_bpf();

/// Returns why no command can sample itself here; empty if it can.
std::string why_no_signals();

}  // namespace pe::recording
