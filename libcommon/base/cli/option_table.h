// The options of a tool as data, from which completions for shells are generated.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/cli/run.h"

namespace pe {

/// Returns a JSON object with "name", "summary", "runs_command" and "options".  The options are in
/// the order of --help, each with "name", "letter" ("" if it has none), "value" ("FILE"; "" if it
/// takes none), "choices" ("auto, perf"; "" if it takes others or any), "repeats" and "text".
std::string option_table(const Tool& tool);

}  // namespace pe
