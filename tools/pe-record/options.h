// pe-record's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/cli/run.h"
#include "recording/probes/list.h"
#include "recording/session.h"

namespace pe::recorder {

struct Options : recording::SessionRequest {
  recording::Request request;
  std::vector<std::string> spans;  ///< functions whose calls are recorded, as typed
  /// Why an engine cannot do what is requested: the end of a sentence.
  std::map<recording::Engine, std::string> not_by;
  WantedWeights weights;    ///< by event; "": of all others
  bool with_waits = false;  ///< also records waits, and samples of CPU time with them
  bool with_wakers = false, with_locks = false;  ///< with_waits: see waits::WaitChoice

  [[nodiscard]] bool can_use(recording::Engine engine) const { return !not_by.contains(engine); }
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::recorder
