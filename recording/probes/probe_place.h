// Decides whether a place in code may have a probe.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "objects/image.h"
#include "recording/probes/function_search.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/source_places.h"
#include "recording/request.h"
#include "unwind/function_ranges.h"

namespace pe::unwind {

/// Returns why no instruction is known to start at `svma`, in words for the user; empty if one is.
/// The start of a function is accepted, and another place if the function's code leads there
/// (function_code.h), also from a function of which it is a moved part.  `ranges` are those of the
/// image; where they have no function, `symbol` states its extent.  Following the code of other
/// functions takes CPU time from `left_ns`, and gives up when none is left; null: no limit.
std::string problem_of_place(const objects::Image& image, const FunctionRanges& ranges,
                             const std::optional<FunctionRanges::Range>& symbol, std::uint64_t svma,
                             std::uint64_t* left_ns = nullptr);

}  // namespace pe::unwind

// Opens the file of a probe, as the recorded programs see it.
//
// The file is opened once.  Whoever needs it later uses the descriptor: a recorded program may have
// swapped the path by then.

namespace pe::recorder {

struct FoundFile {
  std::string path;  ///< for messages
  /// The root in which the path was resolved, "/proc/PID/root", of which it has the prefix; empty:
  /// ours.
  std::string root = {};
  objects::OpenResult opened;
};

/// Opens the file `name`:
///
///     ""                the recorded program
///     "/usr/bin/x"      that file; of a process in a container, below its root
///     "libc.so.6", "c"  a library that the process has mapped, or of the usual folders
///     "bash"            else a program in PATH
///
/// Throws Error with the reason if there is none.
FoundFile find_probed_file(const std::string& name, const recording::Target& target,
                           const std::vector<std::string>& command);

// The reasons why a probe has no place, in words for the user.

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
