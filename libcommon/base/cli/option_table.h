// The options of a tool as data: what completions for shells are made of.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/cli/run.h"

namespace pe {

/// A JSON object: "name", "summary", "runs_command", and "options", in the order of --help, each
/// with "name", "letter" ("" if it has none), "value" ("FILE"; "" if it takes none), "choices"
/// ("auto, perf";
/// "" if it takes others or any), "repeats" and "text".
std::string option_table(const Tool& tool);

}  // namespace pe
