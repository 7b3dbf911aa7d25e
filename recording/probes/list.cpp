// SPDX-License-Identifier: MIT
#include "recording/probes/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "recording/counters/event_sources.h"
#include "recording/glob.h"
#include "recording/probes/probe_name.h"
#include "recording/probes/ready_made.h"
#include "recording/probes/resolve.h"
#include "recording/target_options.h"
#include "stream/records/tracepoint.h"

namespace pe::recorder {
namespace {

std::vector<std::string> events_like(const std::string& pattern) {
  std::vector<std::string> names = recording::EventSources().event_names();
  for (auto& more : {ready_made_names(), stream::tracepoint_names()})
    names.insert(names.end(), more.begin(), more.end());
  const std::string wanted = is_pattern(pattern) ? pattern : "*" + pattern + "*";
  std::erase_if(names, [&](const std::string& name) { return !matches_pattern(wanted, name); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

int list_events(const CommandLine& line, Io& io) {
  if (!line.command.empty())
    throw UsageError("--list takes no command");
  const std::string& pattern = *line.text("list");
  recording::Target target;
  if (line.has("pid")) {
    target = recording::read_target(line, "--pid");
    recording::tidy(target);
  }
  const auto names =
      recording::is_probe(pattern) ? probes_like(pattern, target) : events_like(pattern);
  for (const std::string& name : names)
    io.out.write(printable(name) + "\n");
  if (names.empty())
    throw Error(fmt::format("--list: nothing matches {}", in_quotes(pattern)));
  return kOk;
}

}  // namespace pe::recorder
