// Replaces resolve.cpp, function_exits.cpp and what they use in a build without probes.
// SPDX-License-Identifier: MIT
#include "recording/counters/event_name.h"
#include "recording/parts.h"
#include "recording/probes/function_exits.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/resolve.h"

namespace pe::recorder {

void resolve_probes(recording::Request& request, const recording::Target& /*target*/,
                    const std::vector<std::string>& /*command*/) {
  for (const std::string& event : request.events)
    if (recording::is_probe(event))
      recording::require(recording::Part::kProbes);
}

std::vector<std::string> probes_like(const std::string& /*pattern*/,
                                     const recording::Target& /*target*/) {
  recording::require(recording::Part::kProbes);
  return {};
}

std::vector<recording::SpanProbes> resolve_spans(const std::vector<std::string>& functions,
                                                 const recording::Target& /*target*/,
                                                 const std::vector<std::string>& /*command*/) {
  if (!functions.empty())
    recording::require(recording::Part::kProbes);
  return {};
}

}  // namespace pe::recorder
