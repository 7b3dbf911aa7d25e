// pe-record's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/cli/run.h"
#include "recording/probes/ready_made.h"
#include "recording/session.h"

namespace pe::recorder {

struct Options : recording::SessionRequest {
  recording::Request request;
  std::vector<std::string> spans;  ///< functions whose calls are recorded, as typed
  /// Why the engine does not do what is asked for; empty if it does.
  std::string not_by_bpf, not_by_signal, not_by_ptrace;
  /// Are there events that the engine bpf records at the least cost to the target?  It copies no
  /// stack at a hit of a probe, and needs one counter for all CPUs.
  bool has_events_for_bpf = false;
  WantedWeights weights;  ///< by event; "": of all others
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::recorder
