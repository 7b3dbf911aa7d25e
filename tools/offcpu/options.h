// offcpu's options: as typed, then checked.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/cli/run.h"
#include "recording/session.h"
#include "recording/waits/choice.h"

namespace pe::offcpu {

struct Options : recording::SessionRequest {
  waits::Options waits;
  std::vector<std::string> spans;  ///< functions whose calls are recorded, as typed
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::offcpu
