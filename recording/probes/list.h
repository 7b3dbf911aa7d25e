// Lists events and probes (--list).
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/cli/run.h"
#include "recording/request.h"

namespace pe::recorder {

// Events that pe-record has ready: several events under one name, with their weights.
//
//     io       requests to block devices, by bytes
//     net      TCP sends and receives, by bytes
//     faults   page faults: each one
//     writes   write calls, by the bytes that they have written

/// The field that a sample of an event counts, as the user wrote it, and its unit.
struct WantedWeight {
  std::string field;
  std::string unit;  ///< empty: by the field's name
};
using WantedWeights = std::map<std::string, WantedWeight>;

/// Returns the names of all of them.
std::vector<std::string> ready_made_names();

/// Adds the events of a name to the request; false if none has it.
bool add_ready_made(std::string_view name, recording::Request& request, WantedWeights& weights);

/// Prints the names that match the pattern of --list, one a line, sorted: of this machine's events,
/// of its tracepoints, and of the functions or static probes of a file ("uprobe:PATH:*").  A word
/// without * and ? matches names that contain it.  Returns the exit status.  Throws Error.
int list_events(const CommandLine& line, Io& io);

// Finds the fields of events that --weight and --filter name.

/// Finds the values of all weights (Request::weights), and checks the fields that filters name.
/// Probes have their places.  Throws Error that lists the fields of the event.
void resolve_fields(recording::Request& request, const WantedWeights& weights);

}  // namespace pe::recorder
