// The options of a tool as data, from which completions for shells are generated.
// SPDX-License-Identifier: MIT
#pragma once

#include "base/cli/run.h"
#include "base/io/json_writer.h"

namespace pe {

/// Writes a JSON object with "name", "summary", "runs_command" and "options".  The options are in
/// the order of --help, each with "name", "letter" ("" if it has none), "value" ("FILE"; "" if it
/// takes none), "choices" ("auto, perf"; "" if it takes others or any), "repeats" and "text".
void write_option_table(const Tool& tool, JsonWriter& json);

}  // namespace pe
