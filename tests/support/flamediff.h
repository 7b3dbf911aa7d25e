// Runs flamediff in this process, on profiles given as text.
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "flamediff/flamediff.h"
#include "support/run_tool.h"
#include "support/temp_dir.h"

namespace pe::testing {

/// The tool gets the options, then the two profiles as files.
inline Result flamediff(std::vector<std::string> args, std::string_view before,
                        std::string_view after) {
  const TempDir dir;
  args.push_back(dir.file("before", before));
  args.push_back(dir.file("after", after));
  return run_tool(kFlamediff, args);
}

/// The same with several profiles on each side.
inline Result flamediff_runs(std::vector<std::string> args, const std::vector<std::string>& before,
                             const std::vector<std::string>& after) {
  const TempDir dir;
  args.emplace_back("--runs");
  for (const std::string& profile : before)
    args.push_back(dir.file("before" + std::to_string(args.size()), profile));
  args.emplace_back("--");
  for (const std::string& profile : after)
    args.push_back(dir.file("after" + std::to_string(args.size()), profile));
  return run_tool(kFlamediff, args);
}

/// The line of a table that ends in this function; empty if there is none.
inline std::string row_of(const std::string& table, std::string_view function) {
  std::string_view left = table;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    if (line.ends_with(fmt::format("  {}", function)))
      return std::string(line);
    left.remove_prefix(std::min(left.size(), line.size() + 1));
  }
  return {};
}

}  // namespace pe::testing
