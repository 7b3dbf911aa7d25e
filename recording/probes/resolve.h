// Finds the places of the probes among the requested events.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "recording/request.h"

namespace pe::recorder {

/// Replaces each pattern among the events by an event for each matching function, and finds the
/// places of all probes (Request::probes).  `target` has its processes.  Throws Error with the
/// reason if a probe has no place, and with similar names.
void resolve_probes(recording::Request& request, const recording::Target& target,
                    const std::vector<std::string>& command);

/// Throws Error if so many places cannot have probes.  Each needs a counter, and a descriptor that
/// keeps a program attached to it.  The kernel takes about a tenth of a second to open and to close
/// each (Linux 6.18: it waits until no CPU uses the old list of probes).
void check_places(std::size_t places, std::string_view option);

/// Returns the probes of a file that match "uprobe:PATH:PATTERN" or "usdt:PATH:PATTERN", sorted.
/// Throws Error.
std::vector<std::string> probes_like(const std::string& pattern, const recording::Target& target);

}  // namespace pe::recorder
