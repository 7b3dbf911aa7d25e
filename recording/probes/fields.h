// Finds the fields of events that --weight and --filter name.
// SPDX-License-Identifier: MIT
#pragma once

#include "recording/probes/ready_made.h"
#include "recording/request.h"

namespace pe::recorder {

/// Finds the values of all weights (Request::weights), and checks the fields that filters name.
/// Probes have their places.  Throws Error that lists the fields of the event.
void resolve_fields(recording::Request& request, const WantedWeights& weights);

}  // namespace pe::recorder
