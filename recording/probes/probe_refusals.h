// The reasons why a probe has no place, in words for the user.
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "objects/image.h"
#include "recording/probes/function_search.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/source_places.h"
#include "recording/probes/static_probes.h"

namespace pe::recorder {

/// Returns "no such file", and so on.
std::string_view why_not_opened(objects::OpenFailure failure);

/// Explains that the file has no such function: names similar ones, and reports an inlined function
/// and a stripped file.
std::string describe_unknown_function(const recording::ProbeName& name, const std::string& path,
                                      const names::FunctionSearch& functions,
                                      const names::SourcePlaces& places);

/// Explains that the file has no such static probe, and names similar ones.
std::string describe_unknown_static_probe(const recording::ProbeName& name, const std::string& path,
                                          const std::vector<objects::StaticProbe>& known);

}  // namespace pe::recorder
