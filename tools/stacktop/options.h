// The command line of stacktop, parsed and validated.
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/cli/run.h"
#include "stacktop/hierarchy.h"

namespace pe::stacktop {

enum class Format { kText, kJson, kTsv, kMarkdown };
enum class When { kAuto, kAlways, kNever };

struct Options {
  std::optional<std::size_t> top = 20;        ///< number of lines or hierarchies; nullopt: all
  bool sort_by_total = false;                 ///< false: by self
  std::optional<By> by;                       ///< nullopt: by function
  std::optional<std::string> function;        ///< show the neighbours of this one
  Direction direction = Direction::kCallees;  ///< of neighbours and hierarchies
  bool is_hierarchy = false;
  double least_share = 0;  ///< of the whole profile; lines with less are left out
  std::uint32_t max_levels = 128;
  std::optional<std::size_t> columns;  ///< of a line of text; nullopt: those of the terminal
  bool has_spans = false;              ///< --spans: the input is a sample stream
  Format format = Format::kText;
  When color = When::kAuto;
  bool has_hints = false;
  std::vector<std::string> hint_files;
};

void add_options(boost::program_options::options_description& options);

/// Throws UsageError.
Options read_options(const CommandLine& line);

}  // namespace pe::stacktop
