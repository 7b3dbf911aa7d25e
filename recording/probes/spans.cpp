// SPDX-License-Identifier: MIT
#include "recording/probes/spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "objects/go_functions.h"
#include "objects/image.h"
#include "recording/probes/function_exits.h"
#include "recording/probes/resolve.h"

namespace pe::recorder {
namespace {

using recording::Probe;
using recording::SpanProbes;

constexpr std::string_view kProbe = "uprobe:";

/// Names the option in a message about a probe.
std::string for_span(const Error& error) {
  constexpr std::string_view kOfEvents = "--event: ";
  std::string text = error.what();
  if (text.starts_with(kOfEvents))
    text.replace(0, kOfEvents.size(), "--span: ");
  return text;
}

SpanProbes follow(const std::string& function, const Probe& entry) {
  const objects::Image& image = entry.file->image();
  const unwind::FunctionRanges ranges(image);
  if (objects::is_go_program(image))
    throw Error(fmt::format(
        "--span: {}: {} is written in Go, whose calls move between threads and stacks, so they "
        "cannot be followed",
        in_quotes(function), entry.file->path()));
  SpanProbes span{.function = function, .entry = entry, .exits = entry};
  span.exits.offsets.clear();
  std::size_t jumps = 0, unseen = 0, shared = 0;
  for (const std::uint64_t offset : entry.offsets) {
    const auto svma = image.svma_of_file_offset(offset);
    const unwind::FunctionExits exits = unwind::find_exits(image, ranges, svma.value_or(0));
    if (!exits.problem.empty())
      throw Error(fmt::format("--span: {}: the end of its calls cannot be seen: {}",
                              in_quotes(function), exits.problem));
    jumps += exits.jumps;
    unseen += exits.unseen;
    shared += exits.shared;
    for (const std::uint64_t exit : exits.svmas)
      if (const auto place = objects::file_offset_of_code(image.segments(), exit))
        span.exits.offsets.push_back(*place);
  }
  std::sort(span.exits.offsets.begin(), span.exits.offsets.end());
  span.exits.offsets.erase(std::unique(span.exits.offsets.begin(), span.exits.offsets.end()),
                           span.exits.offsets.end());
  if (jumps > 0)
    span.exits.note = fmt::format(
        "--span: {}: {} of its {} to code that cannot be followed: a call that takes one seems to "
        "end "
        "at the jump",
        in_quotes(function), jumps,
        span.exits.offsets.size() == 1
            ? "1 exit is a jump"
            : fmt::format("{} exits are jumps", span.exits.offsets.size()));
  else if (unseen > 0)
    span.exits.note = fmt::format(
        "--span: {}: {} in it to code that cannot be followed: a call that takes one seems never "
        "to "
        "return",
        in_quotes(function), unseen == 1 ? "1 way leads" : fmt::format("{} ways lead", unseen));
  else if (shared > 0)
    span.exits.note = fmt::format(
        "--span: {}: it jumps to other functions, so {} of its {} are theirs: every other call to "
        "these functions also costs the time of a probe",
        in_quotes(function), shared, plural(span.exits.offsets.size(), "exit"));
  return span;
}

}  // namespace

std::vector<SpanProbes> resolve_spans(const std::vector<std::string>& functions,
                                      const recording::Target& target,
                                      const std::vector<std::string>& command) {
  recording::Request request;
  for (const std::string& function : functions)
    request.events.push_back(std::string(kProbe) + function);
  try {
    resolve_probes(request, target, command);
  } catch (const UsageError& error) {
    throw UsageError(for_span(error));
  } catch (const Error& error) {
    throw Error(for_span(error));
  }
  std::vector<SpanProbes> spans;
  std::size_t places = 0;
  for (const std::string& event : request.events) {
    spans.push_back(follow(event.substr(kProbe.size()), request.probes.at(event)));
    places += spans.back().entry.offsets.size() + spans.back().exits.offsets.size();
  }
  check_places(places, "--span");
  return spans;
}

}  // namespace pe::recorder
