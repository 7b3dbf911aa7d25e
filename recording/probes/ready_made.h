// Events that pe-record has ready: several events under one name, with their weights.
//
//     io       requests to block devices, by bytes
//     net      TCP sends and receives, by bytes
//     faults   page faults: each one
//     writes   write calls, by the bytes that they have written
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "recording/request.h"

namespace pe::recorder {

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

}  // namespace pe::recorder
