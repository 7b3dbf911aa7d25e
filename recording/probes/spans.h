// Finds the places of the probes that mark the calls of functions (--span).
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "recording/request.h"

namespace pe::recorder {

/// Returns the probes of each function: "FUNC" of the recorded program, or "PATH:FUNC", as in
/// resolve_probes().  `target` has its processes.  Throws Error with the reason if the calls of one
/// cannot be followed.
std::vector<recording::SpanProbes> resolve_spans(const std::vector<std::string>& functions,
                                                 const recording::Target& target,
                                                 const std::vector<std::string>& command);

}  // namespace pe::recorder
